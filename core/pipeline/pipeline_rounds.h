// What a pipeline's rank does over and over between its first forwards and its last backwards.
// Ownership: values. Threads: pure functions.
#pragma once

#include "core/pipeline/pipeline_plan.h"

namespace zl {

// The steady part of a body: rounds that are equal but for the number of the micro-batch, which
// grows by `step` from one to the next, each with `step` forwards and backwards of every chunk. No
// rounds where none repeats.
SteadyPart steady_part(const std::vector<Instruction>& body);

// Leaves out what comes between the first rounds of each rank's steady part and its last, where
// that is half of them or more; what follows keeps its numbers (Engine::skip_micro_batches). The
// first are three, or as many as have `kept` micro-batches, and one for each micro-batch on its way
// if `as_in_flight`: where what is made in one round is waited for so much later. For the recording
// device.
PipelinePlan fold(PipelinePlan plan, int kept, bool as_in_flight);

}  // namespace zl
