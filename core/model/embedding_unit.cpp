#include "core/model/embedding_unit.h"

#include "core/ops/embedding.h"

namespace zl {

DropoutSpec EmbeddingUnit::dropout(const BatchGeometry& batch) const {
  return dropout_spec(config_.dropout, batch, number(), DropoutSite::embedding,
                      batch.sequence * config_.hidden);
}

void EmbeddingUnit::forward(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  ResidualPair& stream = micro.stream;
  stream.owned = context_.allocate(batch.dtype, {batch.rows(), config_.hidden},
                                   MemoryTag::activation, {"embedding", number()});
  stream.x = stream.owned.view;
  const int position = table_.position_embedding;
  context_.run(EmbeddingForward{
      .tokens = micro.ids.tokens,
      .wte = access_.weight(table_.token_embedding),
      .wpe = position < 0 ? TensorView{} : access_.weight(position),
      .out = stream.x,
      .sequence = batch.sequence,
      .dropout = dropout(batch),
  });
}

void EmbeddingUnit::backward(MicroBatch& micro) {
  const GradientTarget dtoken = access_.gradient(table_.token_embedding);
  GradientTarget dposition;
  const int position = table_.position_embedding;
  if (position >= 0) dposition = access_.gradient(position);
  context_.run(EmbeddingBackward{
      .tokens = micro.ids.tokens,
      .dout = micro.gradient,
      .dwte = dtoken.view,
      .dwpe = dposition.view,
      .sequence = micro.geometry.sequence,
      .dropout = dropout(micro.geometry),
      .accumulate_wte = dtoken.accumulate,
      .accumulate_wpe = dposition.accumulate,
  });
  access_.gradient_ready(table_.token_embedding);
  if (position >= 0) access_.gradient_ready(position);
}

}  // namespace zl
