#include "core/model/embedding_unit.h"

#include <cmath>
#include <utility>

#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/norm.h"

namespace zl {

DropoutSpec EmbeddingUnit::dropout(const BatchGeometry& batch) const {
  return stream_dropout(config_.dropout, batch, number(), DropoutSite::embedding, config_.hidden);
}

double EmbeddingUnit::scale(DType dtype) const {
  if (!config_.scaled_embedding) return 1;
  const double root = std::sqrt(static_cast<double>(config_.hidden));
  const auto rounded = static_cast<float>(root);
  if (dtype == DType::f64) return root;
  if (dtype == DType::bf16) return to_float(to_bfloat16(rounded));
  return dtype == DType::f16 ? to_float(to_float16(rounded)) : rounded;
}

void EmbeddingUnit::forward(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  ResidualPair& stream = micro.stream;
  Tensor out = context_.allocate(batch.dtype, {batch.rows(), config_.hidden}, MemoryTag::activation,
                                 {"embedding", number()});
  if (batch.extension == nullptr) {
    embed(micro, {.first_row = 0, .count = batch.rows()}, batch.sequence, out);
  } else {
    for (const CachedRows& rows : batch.extension->rows) embed(micro, rows, rows.count, out);
  }
  stream.owned = group_.summed(std::move(out), {"embedding", number()});
  stream.x = stream.owned.view;
  if (config_.encoder) add_segments_and_norm(micro);
  const DropoutSpec of_sum = dropout(batch);
  if (!drops_sum() && of_sum.p > 0) context_.run(Dropout{stream.x, stream.x, of_sum});
}

void EmbeddingUnit::add_segments_and_norm(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  ResidualPair& stream = micro.stream;
  Kept& kept = micro.kept<Kept>(number());
  const auto rows = [&](const char* what) {
    return context_.allocate(batch.dtype, stream.x.shape, MemoryTag::activation, {what, number()});
  };
  const auto statistics = [&](const char* what) {
    return context_.allocate(DType::f32, Shape{batch.rows()}, MemoryTag::activation,
                             {what, number()});
  };
  kept.sum = std::move(stream.owned);
  Tensor segments;
  if (table_.segment_embedding >= 0) {
    segments = rows("segments");
    context_.run(EmbeddingForward{.tokens = micro.ids.segments,
                                  .wte = access_.weight(table_.segment_embedding),
                                  .wpe = {},
                                  .out = segments.view,
                                  .sequence = batch.sequence,
                                  .dropout = {}});
  }
  stream.owned = rows("embedding norm");
  stream.x = stream.owned.view;
  kept.mean = statistics("embedding norm mean");
  kept.rstd = statistics("embedding norm rstd");
  context_.run(NormForward{.kind = config_.norm,
                           .x = kept.sum.view,
                           .add = segments.view,
                           .sum = segments.view.empty() ? TensorView{} : kept.sum.view,
                           .weight = access_.weight(table_.embedding_norm_weight),
                           .bias = access_.weight(table_.embedding_norm_bias),
                           .out = stream.x,
                           .mean = kept.mean.view,
                           .rstd = kept.rstd.view,
                           .epsilon = config_.norm_epsilon,
                           .dropout = {}});
}

void EmbeddingUnit::embed(const MicroBatch& micro, const CachedRows& rows, std::int64_t sequence,
                          const TensorView& out) {
  const int position = group_.is_first() ? table_.position_embedding : -1;
  context_.run(EmbeddingForward{
      .tokens = micro.ids.tokens.flat(rows.first_row, rows.count),
      .wte = access_.weight(table_.token_embedding),
      .wpe = position < 0 ? TensorView{} : access_.weight(position),
      .out = out.row_range(rows.first_row, rows.count),
      .sequence = sequence,
      .dropout = drops_sum() ? dropout(micro.geometry) : DropoutSpec{},
      .first_position = config_.first_position + rows.position,
      .first_token = first_token(),
      .vocab = all_tokens(),
      .scale = scale(micro.geometry.dtype),
  });
}

void EmbeddingUnit::backward(MicroBatch& micro) {
  const GradientTarget dtoken = access_.gradient(table_.token_embedding);
  GradientTarget dposition;
  const int position = table_.position_embedding;
  if (position >= 0) dposition = access_.gradient(position);
  DropoutSpec dropped = dropout(micro.geometry);
  if (!drops_sum() && dropped.p > 0) {  // before the norm, or the rows of others
    context_.run(Dropout{micro.gradient, micro.gradient, dropped});
    dropped = {};
  }
  if (config_.encoder) norm_backward(micro);
  Tensor all_rows;
  context_.run(EmbeddingBackward{
      .tokens = micro.ids.tokens,
      .dout = group_.gathered(micro.gradient, all_rows, {"gradient of all rows", number()}),
      .dwte = dtoken.view,
      .dwpe = dposition.view,
      .sequence = micro.geometry.sequence,
      .dropout = dropped,
      .accumulate_wte = dtoken.accumulate,
      .accumulate_wpe = dposition.accumulate,
      .first_position = config_.first_position,
      .first_token = first_token(),
      .vocab = all_tokens(),
      .scale = scale(micro.geometry.dtype),
  });
  access_.gradient_ready(table_.token_embedding);
  if (position >= 0) access_.gradient_ready(position);
}

void EmbeddingUnit::norm_backward(MicroBatch& micro) {
  Kept& kept = micro.kept<Kept>(number());
  const GradientTarget dweight = access_.gradient(table_.embedding_norm_weight);
  const GradientTarget dbias = access_.gradient(table_.embedding_norm_bias);
  context_.run(NormBackward{.kind = config_.norm,
                            .dout = micro.gradient.view,
                            .x = kept.sum.view,
                            .weight = access_.weight(table_.embedding_norm_weight),
                            .mean = kept.mean.view,
                            .rstd = kept.rstd.view,
                            .dresidual = {},
                            .dx = micro.gradient.view,
                            .dweight = dweight.view,
                            .dbias = dbias.view,
                            .accumulate = dweight.accumulate});
  access_.gradient_ready(table_.embedding_norm_weight);
  access_.gradient_ready(table_.embedding_norm_bias);
  micro.forget(number());
  if (table_.segment_embedding < 0) return;
  const GradientTarget dsegment = access_.gradient(table_.segment_embedding);
  context_.run(EmbeddingBackward{.tokens = micro.ids.segments,
                                 .dout = micro.gradient.view,
                                 .dwte = dsegment.view,
                                 .dwpe = {},
                                 .sequence = micro.geometry.sequence,
                                 .dropout = {},
                                 .accumulate_wte = dsegment.accumulate});
  access_.gradient_ready(table_.segment_embedding);
}

}  // namespace zl
