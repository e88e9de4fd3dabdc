// Device memory over time as a PyTorch memory snapshot, for https://pytorch.org/memory_viz.
// Ownership: values. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "core/trace/trace.h"

namespace zl {

// The pickle that torch.cuda.memory._dump_snapshot writes: "device_traces" with an allocation and a
// release per block, in the trace's order, coloured by memory tag, and "segments" with what is live
// at the end. A trace does not know the pool's slabs: a segment is a range of neighbouring
// addresses that blocks came from, there from the beginning. A block's stack is "PHASE:UNIT:LABEL",
// the phase with its step.
std::string memory_snapshot(const Trace& trace);
// Of several ranks, each a device in their order: the stages of a pipeline.
std::string memory_snapshot(std::span<const Trace* const> ranks);

}  // namespace zl
