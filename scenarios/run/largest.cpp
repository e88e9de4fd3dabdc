#include "scenarios/run/largest.h"

#include <algorithm>

namespace zl {

Scenario with_layers(const Scenario& scenario, std::int64_t layers) {
  Scenario deeper = scenario;
  deeper.model.layers = layers;
  deeper.run.steps = std::min<std::int64_t>(2, scenario.run.steps);
  return deeper;
}

LargestFit largest_fit(const Runner& runner, const Scenario& scenario,
                       const ImportedStrategy& strategy) {
  LargestFit best;
  const auto fits = [&](std::int64_t layers) {
    RunResult books = runner.run(with_layers(scenario, layers), strategy, "sim");
    if (books.outcome != Outcome::ok) return false;
    best.layers = layers;
    best.books = std::move(books);
    return true;
  };
  std::int64_t high = 1;
  while (high <= kMostLayers && fits(high)) high *= 2;
  best.limited = high <= kMostLayers;
  for (std::int64_t low = high / 2; best.limited && high - low > 1;) {
    const std::int64_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  if (best.layers > 0) {
    best.parameters = with_layers(scenario, best.layers).model.parameters();
  }
  return best;
}

}  // namespace zl
