// What the ranks of a run recorded, one for each class of ranks that run the same program.
// Ownership: a Recording owns its traces. Threads: values.
#pragma once

#include <vector>

#include "core/train/rank_program.h"
#include "simulator/rank_classes.h"
#include "simulator/timeline.h"

namespace zl {

// What one rank recorded, for all ranks of its class.
struct ClassRecording {
  sim::RankClass ranks;
  RunResult books;                      // bytes, collectives, ops; times are zero
  Trace trace;                          // of the first kSteadySteps steps of each kind
  std::vector<std::int64_t> stand_ins;  // RankOutcome's
};

// The class whose ranks hold the most device memory at their peak, which a result is of, and the
// others.
struct Recording : ClassRecording {
  Strategy strategy;
  std::vector<ClassRecording> others = {};
};

// The traces of all classes, the recording's own first; they refer to it.
std::vector<sim::RankTrace> rank_traces(const Recording& recording);

}  // namespace zl
