#include "simulator/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "simulator/cost/least_squares.h"
#include "simulator/cost/price.h"
#include "simulator/error_bar.h"
#include "simulator/shared_cores.h"
#include "simulator/timeline.h"
#include "simulator/typical_moments.h"

namespace zl::sim {
namespace {

using Traces = std::vector<MeasuredTrace>;

// What large work takes longer to begin than small work, which one thread does: others wake up.
constexpr double kStartThreads = 100e-6;

// Whether a rank of a shared machine waits for others while the cores do their work: steps tell how
// long, collectives do not.
bool waits_apart(int ranks, const ClusterSpec& machine) {
  return machine.shared_cores >= ranks && ranks > 1;
}

bool outnumber_cores(int ranks, const ClusterSpec& machine) {
  return machine.shared_cores > 0 && ranks > machine.shared_cores;
}

// Where only forward passes were measured, their products tell all.
void share_products(RankCoefficients& entry) {
  constexpr std::size_t kGemm = kOpKind<Gemm>;
  for (std::size_t dtype = 0; dtype < kDTypes; ++dtype) {
    if (entry.ops[kGemm][dtype].samples > 0) continue;
    entry.ops[kGemm][dtype] = std::exchange(entry.forward_ops[kGemm][dtype], {});
    entry.large_ops[kGemm][dtype] = std::exchange(entry.large_forward_ops[kGemm][dtype], {});
  }
}

RankCoefficients fit_ranks(int ranks, const Traces& traces, const ClusterSpec& machine) {
  RankCoefficients entry;
  entry.ranks = ranks;
  const std::vector<Sample> samples =
      samples_of(traces, {.without_disturbed = !outnumber_cores(ranks, machine),
                          .without_waiting = waits_apart(ranks, machine)});
  const auto same_line = [](const Sample& a, const Sample& b) {
    return a.type == b.type && a.on_host == b.on_host && a.kind == b.kind && a.dtype == b.dtype &&
           a.variant == b.variant;
  };
  for (auto first = samples.begin(); first != samples.end();) {
    const auto last = std::find_if(
        first, samples.end(), [&](const Sample& sample) { return !same_line(*first, sample); });
    const auto dtype = static_cast<std::size_t>(first->dtype);
    if (first->type == EventType::op && first->on_host) {
      entry.host_ops[first->kind][dtype] = fit_line({first, last});
    } else if (first->type == EventType::op) {
      auto [small, large] = op_lines(entry, first->variant);
      std::tie(small[first->kind][dtype], large[first->kind][dtype]) =
          fit_lines({first, last}, Weigh::shapes, kStartThreads);
    } else if (first->type == EventType::collective) {
      std::tie(entry.collectives[first->kind][dtype], entry.large_collectives[first->kind][dtype]) =
          fit_lines({first, last});
    } else {
      std::tie(entry.routes[first->kind], entry.large_routes[first->kind]) =
          fit_lines({first, last});
    }
    first = last;
  }
  share_products(entry);
  const HostGaps gaps = host_gaps(traces);
  entry.seconds_per_event = gaps.per_event;
  entry.seconds_per_step = gaps.per_step;
  return entry;
}

// One trace per run: all ranks of a run record the same program.
Traces one_per_run(const Traces& traces) {
  Traces chosen;
  std::set<int> runs;
  for (const MeasuredTrace& measured : traces) {
    if (runs.insert(measured.run).second) chosen.push_back(measured);
  }
  return chosen;
}

// Files answer in times that vary too much to judge the other prices by them.
bool uses_files(const Trace& trace) {
  return std::any_of(trace.events().begin(), trace.events().end(),
                     [](const TraceEvent& event) { return event.type == EventType::transfer; });
}

Traces without_files(Traces traces) {
  std::erase_if(traces, [](const auto& measured) { return uses_files(*measured.trace); });
  return traces;
}

// What was measured at one moment only had the neighbours of that one, where others are the middle
// of several: their part is no error of the prices.
Traces of_several_moments(Traces traces) {
  const auto had_choice = [](const MeasuredTrace& each) { return each.moments.size() > 1; };
  if (std::ranges::any_of(traces, had_choice)) std::erase_if(traces, std::not_fn(had_choice));
  return traces;
}

struct HeldOutErrors {
  double step = 0, own = 0;  // as Calibration's
};

double square_error(const Traces& runs, const ClusterSpec& cluster) {
  double sum = 0;
  for (const MeasuredTrace& measured : runs) {
    const double error = step_error(measured, cluster);
    sum += error * error;
  }
  return sum;
}

// Searches a loss on a grid of twentieths; none where the runs say nothing of it.
std::optional<double> best_loss(const Traces& runs, ClusterSpec cluster,
                                const std::function<void(Calibration&, double)>& set) {
  double best = 0, smallest = INFINITY, greatest = 0;
  for (int i = 0; i <= 20; ++i) {
    set(*cluster.calibration, i / 20.0);
    const double error = square_error(runs, cluster);
    greatest = std::max(greatest, error);
    if (error < smallest) {
      smallest = error;
      best = i / 20.0;
    }
  }
  return smallest < greatest ? std::optional(best) : std::nullopt;
}

// Where the runs say nothing of it, as those of a rank alone on a processor, which communicates
// itself, it is the uncalibrated one.
double fit_overlap_loss(const Traces& traces, ClusterSpec cluster) {
  Traces overlapping = without_files(one_per_run(traces));
  std::erase_if(overlapping, [](const auto& measured) { return !has_overlap(*measured.trace); });
  const std::optional<double> found =
      best_loss(overlapping, cluster,
                [](Calibration& calibration, double loss) { calibration.overlap_loss = loss; });
  if (found) return *found;
  cluster.calibration.reset();
  return CostModel(cluster).overlap_loss();
}

std::optional<double> fit_file_overlap_loss(const Traces& traces, const ClusterSpec& cluster) {
  Traces with_files = one_per_run(traces);
  std::erase_if(with_files, [](const auto& measured) { return !uses_files(*measured.trace); });
  return best_loss(with_files, cluster, [](Calibration& calibration, double loss) {
    calibration.file_overlap_loss = loss;
  });
}

// Of the most ranks that have cores of their own; null: there are none.
const RankCoefficients* with_own_cores(const Calibration& calibration, const ClusterSpec& machine) {
  const RankCoefficients* most = nullptr;
  for (const RankCoefficients& entry : calibration.by_ranks) {
    if (!outnumber_cores(entry.ranks, machine)) most = &entry;
  }
  return most;
}

// `others`: what is known of fewer ranks.
RankCoefficients fit_entry(int ranks, const Traces& traces, const ClusterSpec& machine,
                           const Calibration& others) {
  const Traces runs = without_files(one_per_run(traces));
  const RankCoefficients* base = with_own_cores(others, machine);
  if (outnumber_cores(ranks, machine) && base != nullptr) {
    return share_cores(*base, ranks, runs, machine);
  }
  const RankCoefficients own = fit_ranks(ranks, traces, machine);
  return waits_apart(ranks, machine) ? share_cores(own, ranks, runs, machine) : own;
}

Calibration fit_lines(const Traces& traces, const ClusterSpec& machine) {
  std::map<int, Traces> by_ranks;
  for (const MeasuredTrace& measured : traces) by_ranks[measured.ranks].push_back(measured);
  Calibration calibration;
  for (const auto& [ranks, group] : by_ranks) {
    calibration.by_ranks.push_back(fit_entry(ranks, group, machine, calibration));
  }
  ClusterSpec cluster = machine;
  cluster.calibration = calibration;
  calibration.overlap_loss = fit_overlap_loss(traces, cluster);
  cluster.calibration = calibration;
  calibration.file_overlap_loss = fit_file_overlap_loss(traces, cluster);
  return calibration;
}

// The same where the lines of these ranks are fitted to these traces alone.
Calibration refitted(const Calibration& everything, int ranks, const Traces& traces,
                     const ClusterSpec& machine) {
  Calibration calibration = everything;
  for (RankCoefficients& entry : calibration.by_ranks) {
    if (entry.ranks == ranks) entry = fit_entry(ranks, traces, machine, everything);
  }
  return calibration;
}

// Pooled standard deviation of the groups around their means; 0 when each has one value.
double spread_within(const std::map<int, std::vector<double>>& groups) {
  double sum = 0;
  std::size_t freedom = 0;
  for (const auto& [key, values] : groups) {
    const double center = mean(values);
    for (const double value : values) sum += (value - center) * (value - center);
    freedom += values.size() - 1;
  }
  return freedom == 0 ? 0 : std::sqrt(sum / static_cast<double>(freedom));
}

double predicted_step_of(const MeasuredTrace& run, const ClusterSpec& cluster) {
  return predicted_step(*run.trace, with_devices(cluster, run.ranks));
}

// Seconds of a step at every moment that is known.
std::vector<double> steps_of(const MeasuredTrace& run) {
  return run.moments.empty() ? std::vector{typical_step(run)} : run.moments;
}

// Of each run, priced with what the other runs with as many ranks gave.
HeldOutErrors held_out_errors(const Traces& traces, const ClusterSpec& machine,
                              const Calibration& everything, const OnLeftOut& on_left_out) {
  Traces runs = without_files(of_several_moments(one_per_run(traces)));
  if (runs.empty()) runs = one_per_run(traces);
  std::vector<double> at_any_moment;
  std::map<int, std::vector<double>> logarithms;  // by ranks
  for (const MeasuredTrace& left_out : runs) {
    Traces others = traces;
    std::erase_if(others, [&](const auto& other) {
      return other.run == left_out.run || other.ranks != left_out.ranks;
    });
    ClusterSpec cluster = machine;
    cluster.calibration =
        others.empty() ? everything : refitted(everything, left_out.ranks, others, machine);
    const double predicted = predicted_step_of(left_out, cluster);
    const double error = typical_step(left_out) / predicted - 1;
    if (on_left_out) on_left_out(left_out.run, error);
    for (const double step : steps_of(left_out)) {
      at_any_moment.push_back(std::log(step / predicted));
    }
    logarithms[left_out.ranks].push_back(std::log1p(error));
  }
  return {bar_of(std::move(at_any_moment)), spread_within(logarithms)};
}

}  // namespace

double predicted_step(const Trace& trace, const ClusterSpec& cluster) {
  const Timeline timeline = price(trace, cluster);
  std::vector<double> predicted;
  for (const StepPrice& step : timeline.steps) {
    if (step.step != StepPrice::kSetup) {
      predicted.push_back(static_cast<double>(step.duration) * 1e-12);
    }
  }
  predicted.erase(predicted.begin());  // the first step warms up
  return mean(predicted);
}

double step_error(const MeasuredTrace& measured, const ClusterSpec& cluster) {
  return typical_step(measured) / predicted_step_of(measured, cluster) - 1;
}

Calibration fit(const std::vector<MeasuredTrace>& traces, const ClusterSpec& machine,
                const OnLeftOut& on_left_out) {
  Traces usable = traces;
  std::erase_if(usable, [](const auto& measured) { return step_seconds(*measured.trace).empty(); });
  if (usable.empty()) {
    throw Error(ErrorCode::invalid,
                "calibration: no trace has two timed steps; run more steps with tracing on");
  }
  Calibration calibration = fit_lines(usable, machine);
  calibration.runs = static_cast<int>(one_per_run(usable).size());
  calibration.quiet = std::ranges::all_of(usable, &MeasuredTrace::quiet);
  const HeldOutErrors errors = held_out_errors(usable, machine, calibration, on_left_out);
  calibration.step_error = errors.step;
  calibration.own_error = errors.own;
  return calibration;
}

}  // namespace zl::sim
