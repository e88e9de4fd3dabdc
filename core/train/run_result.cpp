#include "core/train/run_result.h"

#include <cmath>
#include <numeric>

namespace zl {

const char* name_of(Outcome outcome) {
  constexpr const char* kNames[] = {"ok", "out_of_memory", "infeasible", "failed", "interrupted"};
  return kNames[static_cast<std::size_t>(outcome)];
}

const char* name_of(Fits fits) {
  constexpr const char* kNames[] = {"yes", "maybe", "no"};
  return kNames[static_cast<std::size_t>(fits)];
}

Fits HeldBySoftware::within(std::int64_t capacity) const {
  if (capacity == 0 || high <= capacity) return Fits::yes;
  return low > capacity ? Fits::no : Fits::maybe;
}

bool judges_memory(const RunResult& run) {
  return run.outcome == Outcome::ok || run.outcome == Outcome::out_of_memory;
}

Fits fits(const RunResult& run) {
  if (run.outcome == Outcome::out_of_memory) return Fits::no;
  return run.software_held.is_known() ? run.software_held.within(run.device_capacity) : Fits::yes;
}

std::int64_t bytes_at_peak(const RunResult& run) {
  return run.software_held.is_known() ? run.software_held.in_use : run.peak_device.total();
}

std::int64_t bytes_that_must_fit(const RunResult& run) {
  if (run.software_held.is_known()) return run.software_held.device;
  const bool needed_more = run.outcome != Outcome::ok && run.need.reserved > 0;
  return needed_more ? run.need.reserved : run.reserved_device;
}

std::int64_t TaggedBytes::total() const {
  return std::accumulate(tag.begin(), tag.end(), std::int64_t{0});
}

double EvaluationPoint::perplexity() const { return std::exp(loss); }

const EvaluationPoint* best_of(const std::vector<EvaluationPoint>& evaluations) {
  const EvaluationPoint* best = nullptr;
  for (const EvaluationPoint& each : evaluations) {
    if (std::isfinite(each.loss) && (best == nullptr || each.loss < best->loss)) best = &each;
  }
  return best;
}

const EvaluationPoint* best_evaluation(const RunResult& result) {
  const EvaluationPoint* best = best_of(result.evaluations);
  if (!result.best_before) return best;
  return best != nullptr && best->loss < result.best_before->loss ? best : &*result.best_before;
}

std::vector<std::int64_t> overflowed_steps(const RunResult& result) {
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i < result.grad_norm.size() && result.skipped_steps > 0; ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    if (result.grad_norm[i] == -1.0) steps.push_back(result.first_step + step);
  }
  return steps;
}

}  // namespace zl
