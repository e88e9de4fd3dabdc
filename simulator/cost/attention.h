// Fused attention (FlashAttention's family) on a device.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/trace/event.h"
#include "simulator/cluster/device_spec.h"

namespace zl::sim {

enum class AttentionPass : std::uint8_t { forward, backward };

// From the event's FLOPs (the pairs that the mask lets see only) and shape m = batch * heads, n =
// queries, k = head size. Small heads and few blocks of rows leave the matrix units idle. Where
// the software's attention is unfused, keys are taken to be as many as queries; over blocks, the
// pairs that exist are.
double attention_seconds(const TraceEvent& event, AttentionPass pass, const DeviceSpec& device);

}  // namespace zl::sim
