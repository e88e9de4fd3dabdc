#include "core/model/micro_batch.h"

#include <utility>

#include "core/base/random_streams.h"
#include "core/ops/elementwise.h"

namespace zl {

DropoutSpec dropout_spec(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                         std::int64_t elements_per_sample) {
  DropoutSpec spec;
  spec.p = batch.train ? static_cast<float>(p) : 0.0F;
  spec.key = {batch.seed, batch.micro_step, dropout_stream(unit, static_cast<std::uint32_t>(site))};
  spec.base = static_cast<std::uint64_t>(batch.first_sample * elements_per_sample);
  return spec;
}

DropoutSpec stream_dropout(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                           std::int64_t hidden) {
  DropoutSpec spec = dropout_spec(p, batch, unit, site, batch.sequence * hidden);
  spec.base += static_cast<std::uint64_t>(batch.row_part * batch.stream_rows() * hidden);
  return spec;
}

Tensor merged(RankContext& context, ResidualPair stream, const BatchGeometry& batch, double dropout,
              int unit) {
  if (stream.add.view.empty()) return std::move(stream.owned);
  const Shape& shape = stream.add.view.shape;
  const DropoutSpec spec = stream_dropout(dropout, batch, unit, DropoutSite::mlp_out, shape[1]);
  if (spec.p == 0) {
    context.run(Axpy{.x = stream.x, .y = stream.add, .accumulate = true});
    return std::move(stream.add);
  }
  // What is dropped is not rounded before it is added.
  Tensor sum = context.allocate(DType::f32, shape, MemoryTag::workspace, {"residual sum", unit});
  context.run(Axpy{.x = stream.add, .y = sum});
  context.run(Dropout{sum, sum, spec});
  context.run(Axpy{.x = stream.x, .y = sum, .accumulate = true});
  if (batch.dtype == DType::f32) return sum;
  context.run(Axpy{.x = sum, .y = stream.add});
  return std::move(stream.add);
}

void put_off(MicroBatch& micro, int unit, const LinearWeights& linear, Tensor& dout, Tensor& x,
             const TensorGroup* group) {
  if (!micro.splits_backward) return;
  micro.waiting.push_back({unit, linear, std::move(dout), std::move(x), group});
}

void put_off_projection(RankContext& context, MicroBatch& micro, int unit,
                        const LinearWeights& linear, Tensor& dropped, Tensor& x) {
  if (!micro.splits_backward) return;
  if (!dropped.view.empty()) return put_off(micro, unit, linear, dropped, x);
  const TensorView& gradient = micro.gradient;
  Tensor next = context.allocate(gradient.dtype, gradient.shape, MemoryTag::activation,
                                 {"residual gradient", unit});
  std::swap(next, micro.gradient);
  put_off(micro, unit, linear, next, x);
}

}  // namespace zl
