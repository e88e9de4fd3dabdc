#include "scenarios/run/stage_runs.h"

#include <algorithm>

namespace zl {

std::vector<StageRun> stage_runs(const Recording& recording,
                                 std::span<const sim::Timeline> timelines) {
  int ranks = recording.ranks.multiplicity();
  for (const ClassRecording& other : recording.others) ranks += other.ranks.multiplicity();
  const Mesh mesh = mesh_of(recording.strategy, ranks);
  std::vector<StageRun> runs;
  const auto add = [&](const ClassRecording& each) {
    const int stage = mesh.coordinate(each.ranks.representative(), Axis::pipeline);
    runs.push_back({stage, &each, &timelines[runs.size()]});
  };
  add(recording);
  for (const ClassRecording& other : recording.others) add(other);
  std::ranges::stable_sort(runs, {}, &StageRun::stage);
  return runs;
}

std::string ranks_text(const sim::RankClass& ranks) {
  const std::string first = std::to_string(ranks.ranks.front());
  if (ranks.multiplicity() == 1) return "rank " + first;
  return "ranks " + first + "-" + std::to_string(ranks.ranks.back());
}

std::string name_of(const StageRun& run) {
  return "stage " + std::to_string(run.stage) + ", " + ranks_text(run.recording->ranks);
}

}  // namespace zl
