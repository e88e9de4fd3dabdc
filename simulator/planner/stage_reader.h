// What a recorded rank of a short pipeline does in one step, pass by pass and unit by unit.
// Ownership: values. Threads: pure function.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/planner/shared_bucket.h"
#include "simulator/planner/stage_profile.h"
#include "simulator/planner/step_reader.h"

namespace zl::sim {

struct UnitPiece {
  int unit = -1;
  Segment segment,
      tail;  // the latter of its last unit alone, where it has several
  std::vector<PassWork> work;
};
using PassPieces = std::vector<UnitPiece>;

// Of the profiled step.
struct StageFacts {
  std::array<PassPieces, kStagePasses> passes;
  std::int64_t held = 0, before_all = 0;
  std::int64_t slots = 0, slot_bytes = 0;
  std::int64_t message = 0;
  StepFacts step;
  std::int64_t step_end_peak = 0;
  std::array<Lead, 2> leads;
};

StageFacts read_stage(const RecordedStage& stage, const SharedBucket& bucket = {});

}  // namespace zl::sim
