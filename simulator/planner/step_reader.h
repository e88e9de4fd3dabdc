// What a recorded rank does from the last pass of one step to the first of the next, apart from
// what it waits for others.
// Ownership: values. Threads: pure function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simulator/planner/stage_profile.h"

namespace zl::sim {

struct StepFacts {
  std::array<std::int64_t, kStepParts> parts{};  // picoseconds
  std::int64_t exchanged = 0;                    // bytes that go to another stage
};

// Of the step before the profiled one.
StepFacts read_step(const RecordedStage& stage);

}  // namespace zl::sim
