#include "simulator/cost/attention.h"

#include <cmath>

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

// What kernels move for one score, in elements; dropout's mask is one byte more. Forward: the
// product writes it, softmax (with scale and mask) and dropout read and write it, the product with
// V reads it. Backward: dV reads it, dP is written, dropout and softmax's gradient move two and
// three, dQ and dK read one each.
constexpr double kScoreMoves[] = {6, 9};

// Both triangles, by matrix products (two forward, four backward) and memory one after the other.
double materialized_seconds(const TraceEvent& event, AttentionPass pass, const DeviceSpec& device) {
  const auto index = static_cast<std::size_t>(pass);
  const auto tokens = static_cast<double>(event.n);
  const double scores = static_cast<double>(event.m) * tokens * tokens;
  const double products = pass == AttentionPass::forward ? 2 : 4;
  const ComputeRate& rate = device.rate(event.dtype);
  const double flops = 2 * products * scores * static_cast<double>(event.k);
  const double bytes =
      scores * (kScoreMoves[index] * static_cast<double>(size_of(event.dtype)) + 1);
  return flops / (rate.peak * rate.efficiency) +
         bytes / (device.memory_bandwidth * device.memory_efficiency);
}

}  // namespace

double attention_seconds(const TraceEvent& event, AttentionPass pass, const DeviceSpec& device) {
  if (device.materialized_attention) return materialized_seconds(event, pass, device);
  const double peak = device.rate(event.dtype).peak;
  const double ceiling =
      pass == AttentionPass::forward ? device.attention_forward : device.attention_backward;
  if (device.multiprocessors == 0) return event.flops / (peak * ceiling);
  const Saturation& saturation = kSaturation[static_cast<std::size_t>(pass)];
  const auto head = static_cast<double>(event.k);
  const double blocks =
      static_cast<double>(event.m) * std::ceil(static_cast<double>(event.n) / kBlockRows);
  const double heads_used = head / (head + saturation.half_head);
  const double filled = blocks / (blocks + saturation.idle * device.multiprocessors);
  return event.flops / (peak * ceiling * heads_used * filled);
}

}  // namespace zl::sim
