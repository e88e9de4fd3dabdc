// Runs the schedule of one optimizer step against an engine.
// Ownership: refers to nothing after it returns. Threads: one rank's thread.
#pragma once

#include "core/data/data_source.h"
#include "core/train/engine.h"

namespace zl {

struct StepOptions {
  std::int64_t sequence_length = 0;
  bool stop = false, overflows = false;  // as Engine::step
  // Run the schedule's body at most this many times before its last, and count in the trace what is
  // left out: from the second on one is like the other. 0: run all. For the recording device.
  int recorded_rounds = 0;
  // Where the body is run over and over, let the trace hold this many of its rounds and the last;
  // what is like them in between is counted, and not timed (Trace::begin_round). 0: it holds all.
  int held_rounds = 0;
};

// All micro-batches of the engine's coming step, of the data-parallel rank of its context, then the
// update. Throws what the engine and the source throw.
StepMetrics run_step(Engine& engine, const DataSource& data, const StepOptions& options);

}  // namespace zl
