#include "simulator/cost/roofline.h"

#include <algorithm>

#include "core/ops/op.h"
#include "simulator/cost/attention.h"
#include "simulator/cost/gemm.h"

namespace zl::sim {
namespace {

bool is_unaligned(const TraceEvent& gemm) {
  constexpr std::int64_t kAligned = 8;  // elements, 16 bytes
  const bool is_16_bit = gemm.dtype == DType::bf16 || gemm.dtype == DType::f16;
  return is_16_bit && (gemm.m % kAligned + gemm.n % kAligned + gemm.k % kAligned) != 0;
}

double compute_seconds(const TraceEvent& event, const DeviceSpec& device) {
  switch (event.kind) {
    case kOpKind<Gemm>:
      return gemm_seconds(event.m, event.n, event.k, device.rate(event.dtype),
                          device.multiprocessors) /
             (device.clock() * (is_unaligned(event) ? device.software.gemm_unaligned : 1));
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

// What the software's kernels move, where it says so; one of several kernels that the shape does
// not count moves no less than the op's own bytes.
double bytes_of(const TraceEvent& event, const DeviceSpec& device) {
  const auto own = static_cast<double>(event.bytes_read + event.bytes_written);
  const double each = device.software.ops[event.kind].bytes_per_element;
  if (each == 0) return own;
  return each * static_cast<double>(event.m) * static_cast<double>(event.n);
}

// Of an op the share that the software runs.
double share_again(const TraceEvent& event, const DeviceSpec& device) {
  const bool is_product = event.kind == kOpKind<Gemm>;
  const bool is_again = event.scope.phase == Phase::recompute_products;
  return is_product && is_again ? device.software.products_again : 1;
}

}  // namespace

const char* name_of(Bound bound) {
  constexpr const char* kNames[] = {"compute", "memory", "shortest kernel"};
  return kNames[static_cast<std::size_t>(bound)];
}

OpCost op_cost(const TraceEvent& event, const DeviceSpec& device, double share) {
  const bool reduces = event.kind == kOpKind<NormBackward> || event.kind == kOpKind<BiasBackward>;
  const double rate = device.memory_bandwidth * device.memory_efficiency *
                      (reduces ? device.software.reduction : 1);
  const double again = share_again(event, device);
  const double bytes = bytes_of(event, device) * again;
  const double memory = bytes / rate, compute = compute_seconds(event, device) * again;
  const double work = std::max(compute, memory) / share;
  if (work <= device.kernel_seconds) return {device.kernel_seconds, bytes, Bound::kernel};
  return {work, bytes, compute > memory ? Bound::compute : Bound::memory};
}

}  // namespace zl::sim
