#include "simulator/quickest_moments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/median.h"

namespace zl::sim {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

double typical_step(const MeasuredTrace& run) {
  const std::vector<double> steps = step_seconds(*run.trace);
  return steps.empty() ? kUnknown : median(steps);
}

}  // namespace

double keep_quickest(std::vector<MeasuredTrace>& runs,
                     const std::function<std::string(int run)>& name_of) {
  std::map<std::string, std::map<int, double>> moments;  // by name and run: seconds of a step
  for (const MeasuredTrace& each : runs) moments[name_of(each.run)][each.run] = typical_step(each);
  double sum = 0;
  int others = 0;
  std::map<int, int> quickest;  // runs, and of how many each is
  for (const auto& [name, steps] : moments) {
    const auto least =
        std::ranges::min_element(steps, {}, [](const auto& moment) { return moment.second; });
    quickest[least->first] = static_cast<int>(steps.size());
    for (const auto& [run, step] : steps) {
      if (run == least->first || step == kUnknown) continue;
      const double longer = std::log(step / least->second);
      sum += longer * longer, ++others;
    }
  }
  std::erase_if(runs, [&](const auto& each) { return !quickest.contains(each.run); });
  for (MeasuredTrace& each : runs) each.moments = quickest[each.run];
  return others == 0 ? 0 : std::sqrt(sum / others);
}

}  // namespace zl::sim
