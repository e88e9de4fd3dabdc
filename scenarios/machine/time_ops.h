// Ops timed by themselves, for what the training runs of a calibration cannot show.
// Ownership: values. Threads: blocks while the world's ranks work.
#pragma once

#include "core/device/world.h"
#include "core/trace/trace.h"

namespace zl {

// FLOP/s of the fastest of some square products [size, size] with the whole machine at work: the
// ceiling that MFU is a share of.
double measured_gemm_peak(World& world, DType dtype, std::int64_t size);

// The compressed all-reduce's ops on vectors of `elements` and 4 * `elements` elements, as one rank
// of several has them: a lone rank compresses nothing. elements: a multiple of 64.
Trace compressed_ops_trace(World& world, std::int64_t elements, std::int64_t steps);

}  // namespace zl
