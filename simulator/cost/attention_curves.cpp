#include "simulator/cost/attention_curves.h"

#include <algorithm>
#include <cmath>

namespace zl::sim {
namespace {

// speed = at(head) / (1 + s0 / tokens): what long sequences reach by head size in TFLOP/s, and the
// length that costs half of it, without and with a causal mask.
struct Curve {
  AttentionKernel kernel;
  Generation generation;
  AttentionPass pass;
  double head_64, head_128, head_256;
  double full, causal;
};

constexpr auto kForward = AttentionPass::forward, kBackward = AttentionPass::backward;

// Fits within 6 % (Triton 8 %) of: Ampere, A100 SXM, and Hopper, H100 SXM: the charts of
// flash-attention's assets (flash2_*_fwd_bwd_benchmark, flash3_fp16_fwd) and the FlashAttention-3
// paper's for backward; where a chart has both passes together only, forward is 1.12 and backward
// 0.97 of it, as FlashAttention-2's on A100. cuDNN 9.1 on H100: the same charts. Blackwell, GB200:
// NVIDIA/cudnn-frontend benchmark/, cuDNN 9.22. Triton's: HazyResearch's kernel, of which no
// benchmark is public, at 32k and 65k tokens of MPT, whose steps are little else (llm-foundry's
// tables: 100 TFLOP/s forward and backward on A100, 195 on H100), its forward and backward as
// FlashAttention's; short sequences as in the chart of Triton's own.
constexpr Curve kCurves[] = {
    {AttentionKernel::memory_efficient, Generation::ampere, kForward, 83, 105, 84, 49, 289},
    {AttentionKernel::memory_efficient, Generation::ampere, kBackward, 72, 91, 73, 49, 289},
    {AttentionKernel::flash_1, Generation::ampere, kForward, 115, 91, 67, 62, 360},
    {AttentionKernel::flash_1, Generation::ampere, kBackward, 100, 78, 58, 62, 360},
    {AttentionKernel::flash_1, Generation::hopper, kForward, 178, 150, 112, 20, 256},
    {AttentionKernel::flash_1, Generation::hopper, kBackward, 154, 130, 97, 20, 256},
    {AttentionKernel::flash_triton, Generation::ampere, kForward, 123, 112, 83, 50, 360},
    {AttentionKernel::flash_triton, Generation::ampere, kBackward, 106, 97, 72, 50, 360},
    {AttentionKernel::flash_triton, Generation::hopper, kForward, 239, 218, 162, 50, 360},
    {AttentionKernel::flash_triton, Generation::hopper, kBackward, 207, 189, 140, 50, 360},
    {AttentionKernel::flash_2, Generation::ampere, kForward, 197, 223, 212, 166, 524},
    {AttentionKernel::flash_2, Generation::ampere, kBackward, 171, 193, 184, 166, 524},
    {AttentionKernel::flash_2, Generation::hopper, kForward, 319, 360, 320, 65, 431},
    {AttentionKernel::flash_2, Generation::hopper, kBackward, 299, 328, 280, 263, 600},
    {AttentionKernel::flash_3, Generation::hopper, kForward, 494, 682, 744, 233, 725},
    {AttentionKernel::flash_3, Generation::hopper, kBackward, 499, 589, 550, 416, 1100},
    {AttentionKernel::cudnn, Generation::hopper, kForward, 409, 595, 562, 87, 446},
    {AttentionKernel::cudnn, Generation::hopper, kBackward, 456, 538, 500, 357, 1080},
    {AttentionKernel::cudnn, Generation::blackwell, kForward, 1195, 1755, 1780, 425, 1144},
    {AttentionKernel::cudnn, Generation::blackwell, kBackward, 945, 1386, 1386, 369, 1028},
};

// Peaks of the devices that were measured, FLOP/s.
double measured_peak(Generation generation) {
  switch (generation) {
    case Generation::hopper:
      return 9.89e14;
    case Generation::blackwell:
      return 2.5e15;
    default:
      return 3.12e14;
  }
}

// That of the generation, else Ampere's, else FlashAttention-2's: cuDNN and FlashAttention-3 run
// there as it does.
const Curve& curve_of(AttentionKernel kernel, Generation generation, AttentionPass pass) {
  const Curve* ampere = nullptr;
  for (const Curve& each : kCurves) {
    if (each.kernel != kernel || each.pass != pass) continue;
    if (each.generation == generation) return each;
    if (each.generation == Generation::ampere) ampere = &each;
  }
  if (ampere != nullptr) return *ampere;
  return curve_of(AttentionKernel::flash_2,
                  generation == Generation::hopper ? generation : Generation::ampere, pass);
}

// Kernels exist for some head sizes: the others are filled up (FlashAttention's file names;
// BLOCK_HEADDIM of the Triton kernel).
double padded_head(AttentionKernel kernel, double head) {
  if (kernel == AttentionKernel::flash_triton) {
    return std::max(16.0, std::exp2(std::ceil(std::log2(head))));
  }
  const double step = head <= 128 ? 32 : 64;
  return std::ceil(head / step) * step;
}

// Small heads leave the matrix units idle: half as fast at 16 as at 64.
double at_head(const Curve& curve, double head) {
  if (head <= 64) return curve.head_64 * std::sqrt(head / 64);
  if (head <= 128) return std::lerp(curve.head_64, curve.head_128, (head - 64) / 64);
  return std::lerp(curve.head_128, curve.head_256, std::min(1.0, (head - 128) / 128));
}

// Blocks of 128 rows beside the device's multiprocessors: SimuMax's A100 tables (4 to 128 heads at
// 4096). The benchmarks ran 2048 blocks.
double filled(const AttentionWork& work, AttentionPass pass, int multiprocessors) {
  constexpr double kRows = 128, kBenchmark = 2048;
  const double idle = (pass == kForward ? 1.7 : 0.5) * multiprocessors;
  const double blocks = work.planes * std::ceil(work.tokens / kRows);
  return std::min(1.0, blocks / (blocks + idle) * (kBenchmark + idle) / kBenchmark);
}

}  // namespace

double attention_speed(AttentionKernel kernel, AttentionPass pass, const AttentionWork& work,
                       const DeviceSpec& device) {
  if (kernel == AttentionKernel::core || kernel == AttentionKernel::unfused) return 0;
  const Curve& curve = curve_of(kernel, device.generation, pass);
  const double head = padded_head(kernel, work.head);
  const double longest = at_head(curve, head) * 1e12 * work.head / head;
  const double half = work.causal ? curve.causal : curve.full;
  const double peak = std::max(device.rate(DType::bf16).peak, device.rate(DType::f16).peak);
  return longest / (1 + half / work.tokens) * filled(work, pass, device.multiprocessors) * peak /
         measured_peak(curve.generation);
}

}  // namespace zl::sim
