#include "scenarios/planner/plan_search.h"

#include <algorithm>
#include <utility>

#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/planner/plan_answer.h"
#include "scenarios/planner/plan_shortage.h"
#include "scenarios/planner/recorded_plan.h"
#include "scenarios/planner/why.h"

namespace zl {
namespace {

// How many candidates are recorded between two looks at what is still to come: the same for any
// number of cores.
constexpr std::size_t kRecordedAtOnce = 2;
// What a bound may be too high by, of micro-batches that it does not follow one by one.
constexpr double kBoundError = 0.01;
// What closed forms may be off by from one to the next, beyond what those recorded are.
constexpr double kFormError = 0.002, kNearFormError = 0.05;
// Candidates of the least bounds that are judged to say what would fit.
constexpr std::size_t kLeastTried = 64;
constexpr std::size_t kMostRecorded = 200;
// Blocks that automatic recomputation tries beyond its closed form's.
constexpr int kMoreBlocks = 2;

}  // namespace

PlanSearch::PlanSearch(const PlanRequest& request, const PlanHooks& hooks, sim::PlanSpace space)
    : request_(request),
      hooks_(hooks),
      scenario_(request.scenario),
      cluster_(scenario_cluster(request.scenario)),
      budget_(memory_budget(request.scenario, cluster_)),
      space_(std::move(space)),
      profiles_(scenario_, cluster_, space_),
      bounder_(scenario_, cluster_, space_, profiles_),
      memory_(scenario_, space_, budget_) {}

Plans PlanSearch::find(std::optional<Plan> known) {
  plans_.counts.combinations = space_.size();
  candidates_ = plan_candidates(request_, space_, budget_, memory_, bounder_);
  plans_.counts.runnable = candidates_.runnable;
  plans_.counts.too_large = static_cast<std::int64_t>(candidates_.too_large.size());
  judge_all();
  record_best();
  add_known(std::move(known));
  if (!plans_.best.empty()) {
    finish_plans(request_.goal, request_.top, plans_);
  } else if (request_.explains && !is_cancelled()) {
    plans_.shortage = shortage();
  }
  plans_.counts.profiles = profiles_.count();
  return std::move(plans_);
}

void PlanSearch::report(std::int64_t done, std::size_t of, const char* what) const {
  if (hooks_.progress) hooks_.progress(done, static_cast<std::int64_t>(of), what);
}

std::vector<PlanSearch::Judged> PlanSearch::judge(std::span<const PlanCandidate> asked) {
  const std::vector<FittingCandidate> some = fitting(asked, memory_);
  std::vector<DividedPoint> points;
  for (const auto& [each, blocks] : some) points.emplace_back(each.point, each.division);
  profiles_.prepare(points);
  std::vector<std::optional<Judged>> judged(some.size());
  on_all_cores(some.size(), [&](std::size_t i) { judged[i] = judge_one(some[i]); });
  std::vector<Judged> all;
  for (const std::optional<Judged>& each : judged) {
    if (each) all.push_back(*each);
  }
  return all;
}

// Nothing: with all or none of the blocks recomputed it is another candidate.
std::optional<PlanSearch::Judged> PlanSearch::judge_one(FittingCandidate fitting) const {
  const PlanCandidate& each = fitting.candidate;
  if (is_automatic(each) && !each.by_software) {
    auto blocks = profiles_.fewest_blocks(each.point, each.division, budget_);
    if (!blocks) return std::nullopt;
    fitting.blocks = std::move(*blocks);
  }
  Judged judged{each, fitting.blocks,
                *profiles_.closed_form(each.point, each.division, fitting.blocks)};
  if (each.by_software) judged.form.memory = each.least.memory;
  return judged;
}

bool PlanSearch::is_automatic(const PlanCandidate& each) const {
  return space_.recompute[each.point.recompute].mode == RecomputeMode::automatic;
}

std::uint64_t PlanSearch::number_of_twin(const sim::PlanPoint& point) const {
  sim::PlanPoint twin = point;
  twin.state = 0;
  return space_.index(twin);
}

// With the optimizer's state sharded, on the device.
bool PlanSearch::is_twin(const sim::PlanPoint& point) const {
  const Strategy& state = space_.states[point.state];
  return state.zero.stage == 1 && !state.offload.any();
}

bool PlanSearch::may_have_twin(const sim::PlanPoint& point) const {
  if (request_.goal == PlanGoal::memory || space_.pipeline[point.pipeline] == 1) return false;
  const Strategy& state = space_.states[point.state];
  return state.zero.stage >= 2 || state.offload.any();
}

// Sharding more than the optimizer's state costs a pipeline collectives for every micro-batch, and
// leaving the device copies: where the same plan fits without, it is faster.
bool PlanSearch::has_better_twin(const sim::PlanPoint& point) const {
  return may_have_twin(point) && fitting_twins_.contains(number_of_twin(point));
}

// The next ones in the order of their bounds, beginning with `begin`, which goes on. One whose twin
// is among them waits for what is found of that.
std::vector<PlanCandidate> PlanSearch::next_to_judge(std::size_t& begin) {
  std::vector<PlanCandidate> some;
  std::unordered_set<std::uint64_t> twins;
  const auto take = [&](const PlanCandidate& each) {
    if (has_better_twin(each.point)) return;
    if (may_have_twin(each.point) && twins.contains(number_of_twin(each.point))) {
      waiting_.push_back(each);
      return;
    }
    if (is_twin(each.point)) twins.insert(number_of_twin(each.point));
    some.push_back(each);
  };
  for (const PlanCandidate& each : std::exchange(waiting_, {})) take(each);
  for (; begin < candidates_.all.size() && some.size() < request_.judged_at_once; ++begin) {
    take(candidates_.all[begin]);
  }
  return still_good(some);
}

// Those whose pipelines could be among the best, once there are enough.
std::vector<PlanCandidate> PlanSearch::still_good(const std::vector<PlanCandidate>& some) {
  if (request_.goal == PlanGoal::memory || kept_.size() < wanted()) return some;
  std::vector<DividedPoint> points;
  for (const PlanCandidate& each : some) points.emplace_back(each.point, each.division);
  profiles_.prepare_forms(points);
  std::vector<std::int64_t> times(some.size());
  on_all_cores(some.size(), [&](std::size_t i) { times[i] = bounder_.time_of(some[i], budget_); });
  std::vector<PlanCandidate> good;
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (static_cast<double>(times[i]) * (1 - kBoundError) <= static_cast<double>(worst_kept())) {
      good.push_back(some[i]);
    }
  }
  return good;
}

void PlanSearch::keep(const Judged& judged) {
  ++plans_.counts.judged;
  if (!judged.candidate.by_software && !fits(judged.form, budget_)) return;
  ++plans_.counts.fitting;
  if (is_twin(judged.candidate.point) && judged.form.is_exact) {
    fitting_twins_.insert(number_of_twin(judged.candidate.point));
  }
  kept_.push_back(judged);
}

// Until no bound is below the last of the best.
void PlanSearch::judge_all() {
  const std::vector<PlanCandidate>& all = candidates_.all;
  std::size_t begin = 0;
  while ((begin < all.size() || !waiting_.empty()) && !is_cancelled()) {
    const bool enough = kept_.size() >= wanted();
    if (enough && request_.any_will_do) break;
    const sim::PlanBound& least = waiting_.empty() ? all[begin].least : waiting_.front().least;
    if (enough && goal_value(request_.goal, least) > worst_kept()) break;
    for (const Judged& each : judge(next_to_judge(begin))) keep(each);
    keep_best(request_.goal, std::max(kMostRecorded / 2, wanted()), kept_);
    report(static_cast<std::int64_t>(begin), all.size(), "judged");
  }
}

// Some more than are shown: what does not fit after all leaves others.
std::size_t PlanSearch::wanted() const { return request_.top + 4; }

std::int64_t PlanSearch::worst_kept() const {
  return goal_value(request_.goal, kept_[wanted() - 1].form);
}

double PlanSearch::value_of(const RunResult& result) const {
  return request_.goal == PlanGoal::memory ? static_cast<double>(bytes_at_peak(result))
                                           : result.step_time.median;
}

double PlanSearch::foreseen_value(const Judged& each) const {
  const auto value = static_cast<double>(goal_value(request_.goal, each.form));
  return request_.goal == PlanGoal::memory ? value : value * 1e-12;
}

// Of pipelines that gather, reduce or copy for every micro-batch, times are near.
double PlanSearch::doubt(const Judged& each) const {
  const Strategy& state = space_.states[each.candidate.point.state];
  const bool is_near = space_.pipeline[each.candidate.point.pipeline] > 1 &&
                       (state.zero.stage >= 2 || state.offload.any());
  return is_near ? kNearFormError : kFormError;
}

// In the order of the closed forms, until enough are there and none to come is the best, should its
// closed form say too much as well.
void PlanSearch::record_best() {
  double least_ratio = 1;  // of what was recorded to what was foreseen
  for (std::size_t begin = 0; begin < kept_.size() && begin < kMostRecorded && !is_cancelled();) {
    if (plans_.best.size() >= request_.top &&
        foreseen_value(kept_[begin]) * least_ratio * (1 - doubt(kept_[begin])) >
            value_of(plans_.best.front().result)) {
      break;
    }
    const std::size_t count = std::min(kRecordedAtOnce, kept_.size() - begin);
    std::vector<std::optional<Plan>> recorded(count);
    on_all_cores(count, [&](std::size_t i) { recorded[i] = record(kept_[begin + i]); });
    for (std::size_t i = 0; i < count; ++i) {
      ++plans_.counts.recorded;
      if (!recorded[i]) continue;
      least_ratio =
          std::min(least_ratio, value_of(recorded[i]->result) / foreseen_value(kept_[begin + i]));
      plans_.best.push_back(std::move(*recorded[i]));
    }
    std::ranges::stable_sort(plans_.best, {},
                             [&](const Plan& plan) { return value_of(plan.result); });
    begin += count;
    report(plans_.counts.recorded, wanted(), "recorded");
    show_so_far();
  }
}

void PlanSearch::add_known(std::optional<Plan> known) {
  if (!known) return;
  const bool is_new = std::ranges::none_of(plans_.best, [&known](const Plan& each) {
    return each.strategy.strategy == known->strategy.strategy;
  });
  if (!is_new) return;
  plans_.best.push_back(std::move(*known));
  std::ranges::stable_sort(plans_.best, {},
                           [&](const Plan& plan) { return value_of(plan.result); });
  show_so_far();
}

void PlanSearch::show_so_far() const {
  if (!hooks_.found || plans_.best.empty() || is_cancelled()) return;
  Plans so_far = plans_;
  finish_plans(request_.goal, request_.top, so_far);
  hooks_.found(so_far);
}

ImportedStrategy PlanSearch::named(const PlanCandidate& each,
                                   const std::vector<std::int64_t>& blocks) const {
  ImportedStrategy plan{.strategy = space_.strategy(each.point, blocks), .ranks = space_.ranks};
  plan.strategy.name = plan_name(plan.strategy);
  plan.warnings = warnings_of(request_);
  return plan;
}

// More blocks than the closed form takes are recomputed where its memory is less than needed.
std::optional<Plan> PlanSearch::record(const Judged& judged) const {
  std::optional<Plan> plan = record_one(judged);
  if (plan || !is_automatic(judged.candidate)) return plan;
  Judged more = judged;
  for (int i = 0; i < kMoreBlocks && !plan; ++i) {
    add_blocks(scenario_, cluster_, space_.recomputes_by_stage,
               space_.strategy(more.candidate.point, more.blocks), more.blocks);
    plan = record_one(more);
  }
  return plan;
}

std::optional<Plan> PlanSearch::record_one(const Judged& judged) const {
  auto plan = recorded_plan(scenario_, cluster_, budget_, named(judged.candidate, judged.blocks));
  if (plan) plan->closed_form = judged.form;
  return plan;
}

// Of the one that needs least.
std::string PlanSearch::shortage() {
  std::vector<PlanCandidate> least;
  for (const std::vector<PlanCandidate>* list : {&candidates_.all, &candidates_.too_large}) {
    least.insert(least.end(), list->begin(), list->end());
  }
  std::ranges::stable_sort(least, {}, [](const PlanCandidate& each) { return each.least.memory; });
  least.resize(std::min(least.size(), kLeastTried));
  const std::vector<Judged> judged = judge(least);
  const auto smallest =
      std::ranges::min_element(judged, {}, [](const Judged& each) { return each.form.memory; });
  const ImportedStrategy strategy = smallest == judged.end()
                                        ? named(least.front(), {})
                                        : named(smallest->candidate, smallest->blocks);
  return plan_shortage(scenario_, cluster_, strategy);
}

}  // namespace zl
