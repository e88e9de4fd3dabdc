// A priced recording by the stages of its pipeline: who recorded each, and when it ran.
// Ownership: refer to the recording and its timelines. Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scenarios/run/recording.h"

namespace zl {

// What one rank of a stage recorded for all of them; a stage of the mesh, with all its chunks.
struct StageRun {
  int stage = 0;
  const ClassRecording* recording = nullptr;
  const sim::Timeline* timeline = nullptr;
};

// In the order of the stages; one without a pipeline. `timelines`: of price_run().
std::vector<StageRun> stage_runs(const Recording& recording,
                                 std::span<const sim::Timeline> timelines);

// "rank 3", "ranks 0-7".
std::string ranks_text(const sim::RankClass& ranks);
// "stage 2, ranks 16-23".
std::string name_of(const StageRun& run);

}  // namespace zl
