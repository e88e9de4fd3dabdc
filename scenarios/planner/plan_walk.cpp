#include "scenarios/planner/plan_walk.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/plan_candidates.h"
#include "scenarios/planner/plan_memory.h"
#include "scenarios/planner/recorded_plan.h"
#include "scenarios/planner/software_limits.h"
#include "scenarios/planner/why.h"

namespace zl {
namespace {

// What a change has to gain to be one, and how many there are at most.
constexpr double kLeastGain = 0.002;
constexpr int kMostSteps = 12;
// Recorded side by side, in the order of their closed forms, until one gains.
constexpr std::size_t kTriedAtOnce = 4;
constexpr std::size_t kMostTried = 24;

template <class T>
std::uint16_t place_in(std::vector<T>& values, const T& value) {
  const auto found = std::ranges::find(values, value);
  if (found != values.end()) return static_cast<std::uint16_t>(found - values.begin());
  values.push_back(value);
  return static_cast<std::uint16_t>(values.size() - 1);
}

// The stage and the tiers of `state` with everything else of `own` that a point does not say.
Strategy with_state(Strategy own, const Strategy& state) {
  own.zero.stage = state.zero.stage;
  own.offload = state.offload;
  own.tensor = {};
  own.pipeline = {};
  own.zero.replicas = 1;
  own.recompute = {};
  return own;
}

// The request's space with the choices of the start among its own, and where in it that is.
std::pair<sim::PlanSpace, sim::PlanPoint> space_around(const PlanRequest& request,
                                                       const Strategy& start) {
  sim::PlanSpace space = plan_space(request);
  for (Strategy& state : space.states) state = with_state(start, state);
  sim::PlanPoint point;
  point.state = place_in(space.states, with_state(start, start));
  point.tensor = place_in(space.tensor, start.tensor.ranks);
  point.sequence_parallel = place_in(space.sequence_parallel, start.tensor.sequence_parallel);
  point.pipeline = place_in(space.pipeline, start.pipeline.ranks);
  point.chunks = place_in(space.chunks, start.pipeline.virtual_stages);
  point.schedule = place_in(space.schedules, start.pipeline.schedule);
  point.replicas = place_in(space.replicas, start.zero.replicas);
  point.recompute = place_in(space.recompute, start.recompute);
  point.micro_batch = place_in(space.micro_batch, start.micro_batch);
  return {std::move(space), point};
}

// Every point that differs in the given choices.
template <class... Choices>
void vary(const sim::PlanPoint& from, std::vector<sim::PlanPoint>& into,
          const Choices&... choices) {
  std::vector<sim::PlanPoint> all{from};
  const auto each = [&all](std::uint16_t sim::PlanPoint::*choice, std::size_t count) {
    std::vector<sim::PlanPoint> longer;
    for (const sim::PlanPoint& before : all) {
      for (std::size_t i = 0; i < count; ++i) {
        longer.push_back(before);
        longer.back().*choice = static_cast<std::uint16_t>(i);
      }
    }
    all = std::move(longer);
  };
  (each(choices.first, choices.second), ...);
  into.insert(into.end(), all.begin(), all.end());
}

// Numbers of blocks are of the stages that there were.
void leave_blocks_open(const sim::PlanSpace& space, const sim::PlanPoint& from,
                       sim::PlanPoint& to) {
  const auto stages = [&space](const sim::PlanPoint& point) {
    return space.pipeline[point.pipeline] * space.chunks[point.chunks];
  };
  if (space.recompute[to.recompute].stage_blocks.empty() || stages(from) == stages(to)) return;
  const auto open = std::ranges::find(space.recompute, RecomputeMode::automatic,
                                      [](const RecomputeConfig& each) { return each.mode; });
  if (open == space.recompute.end()) return;
  to.recompute = static_cast<std::uint16_t>(open - space.recompute.begin());
}

std::vector<sim::PlanPoint> single_changes(const sim::PlanSpace& space,
                                           const sim::PlanPoint& from) {
  using Point = sim::PlanPoint;
  std::vector<Point> all;
  const auto of = [](std::uint16_t Point::*choice, std::size_t count) {
    return std::pair(choice, count);
  };
  vary(from, all, of(&Point::tensor, space.tensor.size()),
       of(&Point::sequence_parallel, space.sequence_parallel.size()),
       of(&Point::pipeline, space.pipeline.size()));
  for (Point& each : all) {  // what says nothing without a pipeline
    if (space.pipeline[each.pipeline] > 1) continue;
    each.schedule = 0;
    each.chunks = 0;
  }
  vary(from, all, of(&Point::chunks, space.chunks.size()),
       of(&Point::schedule, space.schedules.size()));
  for (Point& each : all) leave_blocks_open(space, from, each);
  vary(from, all, of(&Point::replicas, space.replicas.size()));
  vary(from, all, of(&Point::state, space.states.size()));
  vary(from, all, of(&Point::recompute, space.recompute.size()));
  vary(from, all, of(&Point::micro_batch, space.micro_batch.size()));
  return all;
}

// "mesh dp8 -> pp2 dp4, schedule - -> 1f1b".
std::string change_text(const Strategy& before, const Strategy& after, std::int64_t ranks) {
  std::string text;
  const auto add = [&text](const char* what, const std::string& a, const std::string& b) {
    if (a == b) return;
    text += (text.empty() ? "" : ", ") + std::string(what) + " " + a + " -> " + b;
  };
  add("mesh", mesh_text(before, ranks), mesh_text(after, ranks));
  add("schedule", schedule_text(before.pipeline), schedule_text(after.pipeline));
  add("ZeRO", state_text(before), state_text(after));
  add("recompute", recompute_text(before.recompute), recompute_text(after.recompute));
  add("micro-batch", std::to_string(before.micro_batch), std::to_string(after.micro_batch));
  return text;
}

class PlanWalk {
 public:
  PlanWalk(const PlanRequest& request, const ImportedStrategy& start)
      : request_(request),
        scenario_(request.scenario),
        cluster_(scenario_cluster(scenario_)),
        budget_(memory_budget(scenario_, cluster_)),
        around_(space_around(request, start.strategy)),
        space_(around_.first),
        rules_(scenario_.model, space_, scenario_.run.sequence_length),
        software_(scenario_.run.software, scenario_.model, space_),
        profiles_(scenario_, cluster_, space_),
        memory_(scenario_, space_, budget_) {}

  std::vector<WalkStep> walk(const ImportedStrategy& start, const std::atomic<bool>* cancelled) {
    sim::PlanPoint at = around_.second;
    std::vector<WalkStep> steps{first(start, at)};
    for (int i = 0; i < kMostSteps && (cancelled == nullptr || !*cancelled); ++i) {
      const WalkStep& before = steps.back();
      std::optional<Found> next = best_change(at, before);
      if (!next) break;
      const std::string change =
          change_text(before.plan.strategy.strategy, next->plan.strategy.strategy, space_.ranks);
      at = next->point;
      steps.push_back({change, std::move(next->plan)});
    }
    return steps;
  }

 private:
  struct Found {
    sim::PlanPoint point;
    Plan plan;
  };
  struct Change {
    sim::PlanPoint point;
    std::vector<std::int64_t> blocks = {};  // of each stage, of automatic recomputation
    sim::ClosedForm form;
  };

  // As the file has it, but for the request's batch.
  WalkStep first(ImportedStrategy start, const sim::PlanPoint& point) const {
    const auto division = space_.division(point);
    std::string why;
    if (!division) {
      why = "its mesh and micro-batch do not divide " + std::to_string(space_.ranks) +
            " ranks and a batch of " + std::to_string(space_.global_batch) + " sequences";
    } else {
      start.strategy.gradient_accumulation = division->micro_batches;
      start.ranks = space_.ranks;
      why = sim::conflict_of(scenario_.model, start.strategy, space_.ranks,
                             scenario_.run.sequence_length);
    }
    if (!why.empty()) throw Error(ErrorCode::invalid, start.strategy.name + ": " + why);
    const std::string name = start.strategy.name;
    if (auto plan = recorded_plan(scenario_, cluster_, budget_, start)) return {name, *plan};
    return {name, unlimited_plan(scenario_, cluster_, budget_, start), false};
  }

  bool can_run(const sim::PlanPoint& point) {
    const auto division = space_.division(point);
    return division && sim::is_canonical(space_, point) && rules_.allows(point, *division) &&
           software_.allow(point, *division) &&
           is_within(request_.limits, space_, point, *division);
  }

  std::vector<Change> judged_changes(const sim::PlanPoint& at) {
    std::vector<DividedPoint> points;
    for (const sim::PlanPoint& each : single_changes(space_, at)) {
      if (each != at && can_run(each)) points.emplace_back(each, *space_.division(each));
    }
    profiles_.prepare(points);
    std::vector<std::optional<Change>> judged(points.size());
    on_all_cores(points.size(), [&](std::size_t i) { judged[i] = judge_one(points[i]); });
    std::vector<Change> all;
    for (const std::optional<Change>& each : judged) {
      if (each) all.push_back(*each);
    }
    std::ranges::stable_sort(all, {}, [](const Change& each) { return each.form.time; });
    return all;
  }

  // Nothing: it does not fit by far.
  std::optional<Change> judge_one(const DividedPoint& each) const {
    const auto& [point, division] = each;
    Change change{.point = point};
    if (memory_.knows(point)) {
      const auto held = memory_.fitting(point);
      if (!held) return std::nullopt;
      change.blocks = held->blocks;
      change.form = *profiles_.closed_form(point, division, change.blocks);
      change.form.memory = held->in_use;
      return change;
    }
    if (space_.recompute[point.recompute].mode == RecomputeMode::automatic) {
      const auto blocks = profiles_.fewest_blocks(point, division, budget_);
      if (!blocks) return std::nullopt;
      change.blocks = *blocks;
    }
    change.form = *profiles_.closed_form(point, division, change.blocks);
    if (!fits(change.form, budget_)) return std::nullopt;
    return change;
  }

  std::optional<Found> recorded(const Change& change) const {
    ImportedStrategy strategy{.strategy = space_.strategy(change.point, change.blocks),
                              .ranks = space_.ranks};
    strategy.strategy.name = plan_name(strategy.strategy);
    auto plan = recorded_plan(scenario_, cluster_, budget_, strategy);
    if (!plan) return std::nullopt;
    plan->closed_form = change.form;
    return Found{change.point, std::move(*plan)};
  }

  std::optional<Found> best_change(const sim::PlanPoint& at, const WalkStep& before) {
    const std::vector<Change> changes = judged_changes(at);
    const auto gains = [&before](const std::optional<Found>& found) {
      return found &&
             (!before.fits || seconds(found->plan) * (1 + kLeastGain) < seconds(before.plan));
    };
    std::optional<Found> best;
    const std::size_t end = std::min(changes.size(), kMostTried);
    for (std::size_t begin = 0; begin < end && !gains(best); begin += kTriedAtOnce) {
      const std::size_t count = std::min(kTriedAtOnce, end - begin);
      std::vector<std::optional<Found>> tried(count);
      on_all_cores(count, [&](std::size_t i) { tried[i] = recorded(changes[begin + i]); });
      for (std::optional<Found>& each : tried) {
        if (each && (!best || seconds(each->plan) < seconds(best->plan))) best = std::move(each);
      }
    }
    if (!gains(best)) best.reset();
    return best;
  }

  static double seconds(const Plan& plan) { return plan.result.step_time.median; }

  const PlanRequest& request_;
  const Scenario& scenario_;
  const sim::ClusterSpec cluster_;
  const std::int64_t budget_;
  const std::pair<sim::PlanSpace, sim::PlanPoint> around_;
  const sim::PlanSpace& space_;
  sim::PlanRules rules_;
  const SoftwareLimits software_;
  PlanProfiles profiles_;
  const PlanMemory memory_;
};

}  // namespace

PlanRequest request_like(PlanRequest request, const ImportedStrategy& start) {
  for (ImportedStrategy& each : request.scenario.strategies) {
    each.strategy = with_state(start.strategy, each.strategy);
  }
  return request;
}

std::vector<WalkStep> walk_from(const PlanRequest& request, const ImportedStrategy& start,
                                const std::atomic<bool>* cancelled) {
  return PlanWalk(request, start).walk(start, cancelled);
}

}  // namespace zl
