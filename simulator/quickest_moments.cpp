#include "simulator/quickest_moments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "core/base/median.h"

namespace zl::sim {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// Mean square of the logarithm of how much longer than the quickest the others took; none: nothing
// is known of any other.
std::optional<double> square_drift(const std::map<int, double>& steps, int quickest) {
  double sum = 0;
  int others = 0;
  for (const auto& [run, step] : steps) {
    if (run == quickest || step == kUnknown) continue;
    const double longer = std::log(step / steps.at(quickest));
    sum += longer * longer, ++others;
  }
  if (others == 0) return std::nullopt;
  return sum / others;
}

}  // namespace

double typical_step(const MeasuredTrace& run) {
  const std::vector<double> steps = step_seconds(*run.trace);
  return steps.empty() ? kUnknown : median(steps);
}

bool is_settled(std::vector<double> steps) {
  constexpr double kAgree = 1.05;
  if (steps.size() < 2) return false;
  std::ranges::sort(steps);
  return steps[1] <= kAgree * steps[0];
}

double keep_quickest(std::vector<MeasuredTrace>& runs,
                     const std::function<std::string(int run)>& name_of) {
  std::map<std::string, std::map<int, double>> moments;  // by name and run: seconds of a step
  for (const MeasuredTrace& each : runs) moments[name_of(each.run)][each.run] = typical_step(each);
  std::vector<double> drifts;   // squares, by name
  std::map<int, int> quickest;  // runs, and of how many each is
  for (const auto& [name, steps] : moments) {
    const auto least =
        std::ranges::min_element(steps, {}, [](const auto& moment) { return moment.second; });
    quickest[least->first] = static_cast<int>(steps.size());
    if (const auto drift = square_drift(steps, least->first)) drifts.push_back(*drift);
  }
  std::erase_if(runs, [&](const auto& each) { return !quickest.contains(each.run); });
  for (MeasuredTrace& each : runs) each.moments = quickest[each.run];
  return drifts.empty() ? 0 : std::sqrt(mean(drifts));
}

}  // namespace zl::sim
