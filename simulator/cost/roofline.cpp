#include "simulator/cost/roofline.h"

#include <algorithm>

#include "core/ops/op.h"
#include "simulator/cost/attention.h"
#include "simulator/cost/gemm.h"

namespace zl::sim {
namespace {

double compute_seconds(const TraceEvent& event, const DeviceSpec& device) {
  switch (event.kind) {
    case kOpKind<Gemm>:
      return gemm_seconds(event.m, event.n, event.k, device.rate(event.dtype),
                          device.multiprocessors);
    case kOpKind<AttentionForward>:
      return attention_seconds(event, AttentionPass::forward, device);
    case kOpKind<AttentionBackward>:
      return attention_seconds(event, AttentionPass::backward, device);
    default: {
      // Everything else computes in floats on the vector units.
      const ComputeRate& vector = device.rate(DType::f32);
      return event.flops / (vector.peak * vector.efficiency);
    }
  }
}

}  // namespace

double op_seconds(const TraceEvent& event, const DeviceSpec& device, double share) {
  const double bytes = static_cast<double>(event.bytes_read + event.bytes_written);
  const double memory = bytes / (device.memory_bandwidth * device.memory_efficiency);
  const double work = std::max(compute_seconds(event, device), memory) / share;
  return std::max(device.kernel_seconds, work);
}

}  // namespace zl::sim
