#include "simulator/typical_moments.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/median.h"

namespace zl::sim {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
using Moment = std::pair<double, int>;  // seconds of a step, run

// Of the ascending moments of each name the one at `place`.
void keep_one(std::vector<MeasuredTrace>& runs, const std::function<std::string(int run)>& name_of,
              const std::function<std::size_t(std::size_t moments)>& place) {
  std::map<std::string, std::vector<Moment>> by_name;
  for (const MeasuredTrace& each : runs) {
    by_name[name_of(each.run)].emplace_back(typical_step(each), each.run);
  }
  std::map<int, std::vector<double>> kept;  // runs, and the steps of which each is one
  for (auto& [name, moments] : by_name) {
    std::ranges::sort(moments);
    std::vector<double> known;
    for (const auto& [step, run] : moments) {
      if (step < kUnknown) known.push_back(step);
    }
    const int run = moments[place(known.size())].second;
    kept[run] = std::move(known);
  }
  std::erase_if(runs, [&](const auto& each) { return !kept.contains(each.run); });
  for (MeasuredTrace& each : runs) each.moments = kept[each.run];
}

}  // namespace

double typical_step(const MeasuredTrace& run) {
  std::vector<double> steps = step_seconds(*run.trace);
  if (steps.empty()) return kUnknown;
  std::ranges::sort(steps);
  if (run.quiet) steps.resize((steps.size() + 1) / 2);
  return median(steps);
}

bool agree(double one, double other) {
  constexpr double kApart = 1.05;
  return std::max(one, other) <= kApart * std::min(one, other);
}

void keep_typical(std::vector<MeasuredTrace>& runs,
                  const std::function<std::string(int run)>& name_of) {
  keep_one(runs, name_of, [](std::size_t moments) { return moments / 2; });
}

void keep_quietest(std::vector<MeasuredTrace>& runs,
                   const std::function<std::string(int run)>& name_of) {
  for (MeasuredTrace& each : runs) each.quiet = true;
  keep_one(runs, name_of, [](std::size_t) { return std::size_t{0}; });
}

}  // namespace zl::sim
