#include "simulator/typical_moments.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/median.h"

namespace zl::sim {

double typical_step(const MeasuredTrace& run) {
  std::vector<double> steps = step_seconds(*run.trace);
  if (steps.empty()) return std::numeric_limits<double>::infinity();
  std::ranges::sort(steps);
  if (run.quiet) steps.resize(quicker_half(steps.size()));
  return median(steps);
}

bool agree(double one, double other) {
  constexpr double kApart = 1.05;
  return std::max(one, other) <= kApart * std::min(one, other);
}

void Watched::add(const MeasuredTrace& run) {
  steps.push_back(typical_step(run));
  for (const double step : step_seconds(*run.trace)) seconds += step;
}

bool is_settled(const Watched& runs, Moments moments) {
  constexpr double kEnoughSeconds = 5;
  const std::size_t most = moments == Moments::quiet ? 6 : 3;
  if (runs.steps.size() >= most) return true;
  if (runs.steps.size() < 2 || moments == Moments::all) return false;
  if (moments == Moments::quiet && runs.seconds < kEnoughSeconds) return false;
  std::vector<double> steps = runs.steps;
  std::ranges::sort(steps);
  return agree(steps[0], steps[1]);
}

std::size_t run_that_counts(const Watched& runs, Moments moments) {
  std::vector<std::size_t> places(runs.steps.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, [&](std::size_t place) { return runs.steps[place]; });
  return places[moments == Moments::quiet ? 0 : places.size() / 2];
}

}  // namespace zl::sim
