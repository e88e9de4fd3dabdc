#include "simulator/cost/attention.h"

#include <algorithm>
#include <cmath>

#include "simulator/cost/attention_curves.h"

namespace zl::sim {
namespace {

// efficiency = ceiling * head / (head + kHalfHead) * blocks / (blocks + idle * multiprocessors).
// Head sizes: FlashAttention-3's H100 charts at sequence 16 k (64, 128, 256: 497, 648, 756 TF/s
// forward; 422, 501 backward at 2 k). Blocks of 128 rows: SimuMax's A100 tables at sequence 4096
// with 4 to 128 heads.
struct Saturation {
  double half_head, idle;
};
constexpr Saturation kSaturation[] = {{56, 2.0}, {30, 0.6}};
constexpr double kBlockRows = 128;

// Of a layout of blocks the core's own kernels take care, not cuDNN, by instructions that reach a
// part of Hopper's peak: efficiency = ceiling * head / (head + kHalfHead), through its rates at
// head sizes 64 and 128 on an H200 (results/measured/h200/e-kernels.json, "zerolab's": .225 and
// .299 of 989 TFLOP/s forward, .173 and .199 backward).
struct OwnKernels {
  double ceiling, half_head;
};
constexpr OwnKernels kOwnOnHopper[] = {{0.446, 63}, {0.235, 23}};

// The (query, key) pairs that its FLOPs count: 4 of them forward, 10 backward, for each element of
// a head.
double pairs_of(const TraceEvent& event, AttentionPass pass) {
  return event.flops /
         ((pass == AttentionPass::forward ? 4.0 : 10.0) * static_cast<double>(event.k));
}

// Both triangles, or the blocks that exist, by matrix products (two forward, four backward) and
// memory one after the other.
double materialized_seconds(const TraceEvent& event, AttentionPass pass, const DeviceSpec& device) {
  const auto index = static_cast<std::size_t>(pass);
  const auto tokens = static_cast<double>(event.n);
  const bool sparse = variant_of(event) == Variant::sparse;
  const double scores =
      sparse ? pairs_of(event, pass) : static_cast<double>(event.m) * tokens * tokens;
  const double products = pass == AttentionPass::forward ? 2 : 4;
  const ComputeRate& rate = device.rate(event.dtype);
  const double flops = 2 * products * scores * static_cast<double>(event.k);
  // Stated for 16 bits.
  const double bytes =
      scores * device.software.score_bytes[index] * static_cast<double>(size_of(event.dtype)) / 2;
  return flops / (rate.peak * rate.efficiency * device.clock()) +
         bytes / (device.memory_bandwidth * device.memory_efficiency);
}

// A causal mask leaves half of the scores, a window less.
AttentionWork work_of(const TraceEvent& event, AttentionPass pass) {
  constexpr double kCausal = 0.75;
  const auto planes = static_cast<double>(event.m), tokens = static_cast<double>(event.n);
  return {.planes = planes,
          .tokens = tokens,
          .head = static_cast<double>(event.k),
          .causal = pairs_of(event, pass) < kCausal * planes * tokens * tokens};
}

}  // namespace

double attention_seconds(const TraceEvent& event, AttentionPass pass, const DeviceSpec& device) {
  const AttentionKernel kernel = device.software.attention;
  if (kernel == AttentionKernel::unfused) return materialized_seconds(event, pass, device);
  const bool sparse = variant_of(event) == Variant::sparse;
  if (kernel != AttentionKernel::core && size_of(event.dtype) == 2 && !sparse) {
    return event.flops / (attention_speed(kernel, pass, work_of(event, pass), device) *
                          device.software.attention_rate * device.clock());
  }
  const double peak = device.rate(event.dtype).peak * device.clock();
  const double ceiling =
      pass == AttentionPass::forward ? device.attention_forward : device.attention_backward;
  if (device.multiprocessors == 0) return event.flops / (peak * ceiling);
  const Saturation& saturation = kSaturation[static_cast<std::size_t>(pass)];
  const auto head = static_cast<double>(event.k);
  const double blocks =
      static_cast<double>(event.m) * std::ceil(static_cast<double>(event.n) / kBlockRows);
  const double heads_used = head / (head + saturation.half_head);
  const double filled = blocks / (blocks + saturation.idle * device.multiprocessors);
  double efficiency = ceiling * heads_used;
  if (kernel == AttentionKernel::core && sparse && device.generation == Generation::hopper) {
    const OwnKernels& own = kOwnOnHopper[static_cast<std::size_t>(pass)];
    efficiency = std::min(efficiency, own.ceiling * head / (head + own.half_head));
  }
  return event.flops / (peak * efficiency * filled);
}

}  // namespace zl::sim
