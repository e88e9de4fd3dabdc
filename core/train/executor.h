// Runs the schedule of one optimizer step against an engine.
// Ownership: refers to nothing after it returns. Threads: one rank's thread.
#pragma once

#include "core/data/data_source.h"
#include "core/train/engine.h"

namespace zl {

// All micro-batches of the engine's coming step, of the data-parallel rank of its context, then the
// update. `stop`: as Engine::step. Throws what the engine and the source throw.
StepMetrics run_step(Engine& engine, const DataSource& data, std::int64_t sequence_length,
                     bool stop = false);

}  // namespace zl
