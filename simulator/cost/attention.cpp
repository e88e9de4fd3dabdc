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

}  // namespace

double attention_seconds(const TraceEvent& event, AttentionPass pass, const DeviceSpec& device) {
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
