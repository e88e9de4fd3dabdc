#include "scenarios/cli/ratio_line.h"

#include <fmt/format.h>

#include <vector>

#include "simulator/ratio.h"

namespace zl::cli {

std::string ratio_line(std::span<const RunResult> results) {
  std::vector<const RunResult*> runs;
  for (const RunResult& run : results) {
    if (run.predicted && run.outcome == Outcome::ok) runs.push_back(&run);
  }
  if (runs.empty()) return "";
  const RunResult* fastest = sim::fastest_like(*runs.front(), runs);
  if (fastest == nullptr) return "";
  std::string others;
  for (const RunResult* run : runs) {
    if (sim::fastest_like(*run, runs) != fastest) return "";
    const auto ratio = run == fastest ? std::nullopt : sim::step_ratio(*fastest, *run);
    if (!ratio) continue;
    others +=
        fmt::format("{} {} {}", others.empty() ? "" : ";", run->strategy, sim::readable(*ratio));
  }
  if (others.empty()) return "";
  return "Fastest: " + fastest->strategy +
         ". Step times beside it (errors that both share cancel):" + others + ".";
}

}  // namespace zl::cli
