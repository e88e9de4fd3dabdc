// The element-wise reduction under every collective of thread ranks.
// Ownership: nothing. Threads: pure function of its buffers.
#pragma once

#include <cstdint>
#include <span>

#include "core/device/communicator.h"

namespace zl::cpu {

// Every destination[i] = the sources' i-th elements combined in the order given: added in f32 (f64
// for f64, i64 for i32), scaled by 1 / sources.size() for average, rounded once. Destinations may
// be sources too. Requires can_reduce(dtype, op).
void reduce(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
            std::span<std::byte* const> destinations, std::int64_t count);

}  // namespace zl::cpu
