#include "scenarios/cli/ratio_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "simulator/ratio.h"

namespace zl::cli {

std::string ratio_line(std::span<const RunResult> results) {
  std::vector<const RunResult*> runs;
  for (const RunResult& run : results) {
    if (run.predicted && run.outcome == Outcome::ok) runs.push_back(&run);
  }
  if (runs.size() < 2) return "";
  const RunResult& first = *runs.front();
  const bool alike = std::all_of(runs.begin(), runs.end(), [&](const RunResult* run) {
    return run->setup == first.setup && run->ranks == first.ranks &&
           run->precision == first.precision;
  });
  if (!alike) return "";
  const RunResult& fastest =
      **std::min_element(runs.begin(), runs.end(), [](const RunResult* a, const RunResult* b) {
        return a->step_time.median < b->step_time.median;
      });
  std::string others;
  for (const RunResult* run : runs) {
    const auto ratio = run == &fastest ? std::nullopt : sim::step_ratio(fastest, *run);
    if (!ratio) continue;
    others += fmt::format("{} {} {:.2f}x, {:.2f} to {:.2f}{}", others.empty() ? "" : ";",
                          run->strategy, ratio->value, ratio->low, ratio->high,
                          ratio->is_decided() ? "" : ", not decided");
  }
  if (others.empty()) return "";
  return "Fastest: " + fastest.strategy +
         ". Step times beside it (errors that both share cancel):" + others + ".";
}

}  // namespace zl::cli
