// What a recorded rank does from the last pass of one step to the first of the next, apart from
// what it waits for others.
// Ownership: values. Threads: pure function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simulator/late_reductions.h"
#include "simulator/planner/stage_profile.h"

namespace zl::sim {

struct StepFacts {
  std::array<std::int64_t, kStepParts> parts{};  // picoseconds
  std::int64_t exchanged = 0;                    // bytes that go to another stage
};

// What it reduces when its passes have ended.
LateReductions late_reductions_of(const RecordedStage& stage);

// Of the step before the profiled one; late: of the stage.
StepFacts read_step(const RecordedStage& stage, const LateReductions& late);

}  // namespace zl::sim
