#include "scenarios/machine/time_ops.h"

#include <algorithm>

#include "core/ops/op.h"
#include "core/rank/rank_context.h"

namespace zl {
namespace {

void compress_as_one_of_many(RankContext& context, std::int64_t elements) {
  constexpr std::int64_t kRanks = 8;
  const std::int64_t chunk = elements / kRanks;
  const auto allocate = [&](DType dtype, const Shape& shape) {
    return context.allocate(dtype, shape, MemoryTag::workspace, {"compressed message"});
  };
  const Tensor x = allocate(DType::f32, {kRanks, chunk});
  const Tensor packed = allocate(DType::u8, {kRanks, packed_bytes(chunk)});
  const Tensor scales = allocate(DType::f32, {kRanks, 1}), square = allocate(DType::f64, {2});
  context.run(RandomNormal{x.view.flat(), 1.0, {}, 0});
  context.run(Fill{scales.view.flat(), 1});
  context.run(Fill{square, 1});
  context.run(SignCompress{x, square, packed, scales.view.flat(0, 1), elements, elements});
  context.run(SignAverage{packed, scales, x.view.flat(0, chunk), 0, chunk});
  context.run(SignUnpack{packed, scales, x, 0, elements});
}

}  // namespace

double measured_gemm_peak(World& world, DType dtype, std::int64_t size) {
  constexpr int kRepeats = 12;
  double best = 0;
  world.run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    const auto matrix = [&] {
      Tensor tensor =
          context.allocate(dtype, {size, size}, MemoryTag::workspace, {"peak measurement"});
      context.run(RandomNormal{tensor.view.flat(), 1.0, {}, 0});
      return tensor;
    };
    const Tensor a = matrix(), b = matrix(), c = matrix();
    for (int i = 0; i < kRepeats; ++i) context.run(Gemm{a, b, c, {}, false, true, false});
    context.synchronize(StreamId::compute);
    for (const TraceEvent& event : context.trace().events()) {
      const auto nanoseconds = static_cast<double>(event.timing.end_ns - event.timing.start_ns);
      if (event.type == EventType::op && event.kind == kOpKind<Gemm> && nanoseconds > 0) {
        best = std::max(best, event.flops / nanoseconds * 1e9);
      }
    }
  });
  return best;
}

Trace compressed_ops_trace(World& world, std::int64_t elements, std::int64_t steps) {
  Trace trace;
  world.run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    for (int step = 1; step <= steps; ++step) {
      context.scope().step = step;
      for (const std::int64_t count : {elements, 4 * elements}) {
        compress_as_one_of_many(context, count);
      }
    }
    context.synchronize(StreamId::compute);
    trace = context.trace();
  });
  return trace;
}

}  // namespace zl
