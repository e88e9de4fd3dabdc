#include "scenarios/planner/robustness.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/files/clusters.h"
#include "scenarios/planner/grid.h"
#include "scenarios/run/replay.h"
#include "simulator/planner/goodput.h"

namespace zl {
namespace {

// Enough for the drawn share to be within a hundredth of the expected one.
constexpr double kPlayedFailures = 20000;
constexpr std::int64_t kMostPlayedSteps = 50'000'000;

// Seconds of a step whose slowest device is slow.
double slow_step(const Scenario& scenario, const Replay& run, sim::ClusterSpec cluster,
                 const RunResult& fast, double slowdown) {
  // What was measured is no function of rates.
  if (cluster.calibration) return fast.step_time.median + (slowdown - 1) * fast.time.compute;
  for (sim::ComputeRate& rate : cluster.device.rates) rate.peak /= slowdown;
  cluster.device.memory_bandwidth /= slowdown;
  return price_run(scenario, run.recording, cluster).step_time.median;
}

// Of the node that writes most: tensor groups lie within nodes, data parallelism comes next.
std::int64_t checkpoint_bytes(const Strategy& strategy, const RunResult& books,
                              const sim::ClusterSpec& cluster) {
  const auto of = [&books](MemoryTag tag) {
    const auto index = static_cast<std::size_t>(tag);
    return books.peak_device.tag[index] + books.peak_host.tag[index] + books.peak_nvme.tag[index];
  };
  std::int64_t rank = of(MemoryTag::optimizer);
  if (strategy.precision.compute_dtype == DType::f32) rank += of(MemoryTag::parameter);
  const std::int64_t here = std::min(cluster.node_devices, cluster.devices);
  const std::int64_t writers =
      strategy.zero.stage > 0 ? here : std::min(here, strategy.tensor.ranks);
  return rank * writers;
}

double tenths(double value) { return std::round(value * 10) / 10; }

void add_failures(const RobustnessQuestion& question, Robustness& out) {
  const sim::FailureModel failures{.mean_between = out.mean_between_failures,
                                   .write = out.write_seconds,
                                   .restart = question.restart_seconds + out.write_seconds};
  const auto share = [&](std::int64_t steps) {
    return sim::goodput(failures, static_cast<double>(steps) * out.step_seconds);
  };
  const double steps = sim::best_interval(failures) / out.step_seconds;
  const auto fewer = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(steps)));
  out.steps_between = share(fewer) >= share(fewer + 1) ? fewer : fewer + 1;
  out.young_seconds = sim::young_interval(failures);
  out.daly_seconds = sim::daly_interval(failures);
  out.goodput = share(out.steps_between);
  const double played = kPlayedFailures * failures.mean_between * out.goodput / out.step_seconds;
  out.played_goodput = sim::played_goodput(
      failures, out.step_seconds, out.steps_between,
      static_cast<std::int64_t>(std::min(played, static_cast<double>(kMostPlayedSteps))) + 1, 1);
}

}  // namespace

Robustness robustness_of(const PlanRequest& request, const Plan& plan,
                         const RobustnessQuestion& question) {
  const sim::ClusterSpec cluster = scenario_cluster(request.scenario);
  const Strategy& strategy = plan.strategy.strategy;
  Robustness out;
  out.step_seconds = plan.result.step_time.median;
  if (question.slow_share > 0) {
    const Replay run = replay(request.scenario, plan.strategy);
    const double slow = slow_step(request.scenario, run, cluster, plan.result, question.slowdown);
    const double met = 1 - std::pow(1 - question.slow_share, plan.result.ranks);
    out.step_seconds += met * (slow - out.step_seconds);
  }
  out.checkpoint_bytes = checkpoint_bytes(strategy, plan.result, cluster);
  out.write_seconds = static_cast<double>(out.checkpoint_bytes) / cluster.storage.rate();
  if (question.mean_between_failures > 0) {
    out.mean_between_failures = question.mean_between_failures / plan.result.ranks;
    add_failures(question, out);
  }
  out.tokens_per_second = static_cast<double>(tokens_per_step(request.scenario, strategy)) *
                          out.goodput / out.step_seconds;
  return out;
}

Table robustness_table(const std::vector<Plan>& plans, const std::vector<Robustness>& all) {
  Table table{{{"plan"},
               {"step", Align::right, Unit::seconds},
               {"with stragglers", Align::right, Unit::seconds},
               {"goodput", Align::right, Unit::fraction},
               {"tokens/s that last"},
               {"checkpoint every (steps)"},
               {"minutes"},
               {"hours between failures"},
               {"by Young"},
               {"by Daly"},
               {"played", Align::right, Unit::fraction},
               {"checkpoint of a node", Align::right, Unit::bytes},
               {"takes", Align::right, Unit::seconds}},
              {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Robustness& each = all[i];
    const bool fails = each.mean_between_failures > 0;
    const auto known = [fails](double value) { return fails ? Cell(value) : Cell(); };
    const auto minutes = [&known](double seconds) { return known(tenths(seconds / 60)); };
    table.rows.push_back({static_cast<std::int64_t>(i + 1), plans[i].result.step_time.median,
                          each.step_seconds, known(each.goodput),
                          std::llround(each.tokens_per_second),
                          fails ? Cell(each.steps_between) : Cell(),
                          minutes(static_cast<double>(each.steps_between) * each.step_seconds),
                          known(tenths(each.mean_between_failures / 3600)),
                          minutes(each.young_seconds), minutes(each.daly_seconds),
                          known(each.played_goodput), each.checkpoint_bytes, each.write_seconds});
  }
  return table;
}

}  // namespace zl
