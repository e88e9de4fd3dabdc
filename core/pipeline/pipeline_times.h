// When the work of a pipeline runs and what it holds meanwhile: every rank in the order of its
// list, as early as what it waits for allows. Also its proof: a list that
// waits for ever, forgets work or runs it twice is refused.
// Ownership: values. Threads: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/pipeline.h"

namespace zl {

// Of one stage, in any unit of time. A whole backward takes both halves.
struct StageCosts {
  std::int64_t forward = 1, input_gradient = 1, weight_gradient = 1;

  std::int64_t of(WorkKind kind) const;
};

struct PipelineTimes {
  struct Rank {
    std::vector<std::int64_t> start;  // of the rank's list
    std::int64_t end = 0, busy = 0;   // of its last work; sum of all
    // Forwards of chunks that are held at the same time, at most: until the gradient of their input
    // is known, and until that of their weights is.
    int held_until_input_gradient = 0, held_until_weight_gradient = 0;

    // Idle between its first and its last work.
    std::int64_t bubble() const { return end - start.front() - busy; }
  };
  std::vector<Rank> ranks;
  std::int64_t makespan = 0;
};

// costs: of each stage. message: between ranks, which sends without waiting. Overlapped work takes
// the sum of its times. Error{infeasible} naming what each rank waits for when nothing can run.
PipelineTimes time_pipeline(const Pipeline& pipeline, std::span<const StageCosts> costs,
                            std::int64_t message = 0);

// The whole proof: every forward and backward of every micro-batch through every stage once, on the
// rank that has the stage; the halves of a backward in their order; each pair of ranks exchanges
// its messages in one order on both sides; it ends (time_pipeline); and no rank holds more forwards
// than `most_held` (0: any number) until the gradients of their weights. Error{infeasible} naming
// rank and work.
void check_pipeline(const Pipeline& pipeline, int most_held = 0);

}  // namespace zl
