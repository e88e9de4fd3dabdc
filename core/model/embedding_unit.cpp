#include "core/model/embedding_unit.h"

#include <utility>

#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"

namespace zl {

DropoutSpec EmbeddingUnit::dropout(const BatchGeometry& batch) const {
  return stream_dropout(config_.dropout, batch, number(), DropoutSite::embedding, config_.hidden);
}

void EmbeddingUnit::forward(MicroBatch& micro) {
  const BatchGeometry& batch = micro.geometry;
  ResidualPair& stream = micro.stream;
  Tensor out = context_.allocate(batch.dtype, {batch.rows(), config_.hidden}, MemoryTag::activation,
                                 {"embedding", number()});
  const int position = group_.is_first() ? table_.position_embedding : -1;
  context_.run(EmbeddingForward{
      .tokens = micro.ids.tokens,
      .wte = access_.weight(table_.token_embedding),
      .wpe = position < 0 ? TensorView{} : access_.weight(position),
      .out = out,
      .sequence = batch.sequence,
      .dropout = group_.has_others() ? DropoutSpec{} : dropout(batch),
      .first_token = first_token(),
      .vocab = all_tokens(),
  });
  stream.owned = group_.summed(std::move(out), {"embedding", number()});
  stream.x = stream.owned.view;
  const DropoutSpec of_sum = dropout(batch);
  if (group_.has_others() && of_sum.p > 0) context_.run(Dropout{stream.x, stream.x, of_sum});
}

void EmbeddingUnit::backward(MicroBatch& micro) {
  const GradientTarget dtoken = access_.gradient(table_.token_embedding);
  GradientTarget dposition;
  const int position = table_.position_embedding;
  if (position >= 0) dposition = access_.gradient(position);
  DropoutSpec dropped = dropout(micro.geometry);
  if (group_.has_others() && dropped.p > 0) {  // before the rows of others come
    context_.run(Dropout{micro.gradient, micro.gradient, dropped});
    dropped = {};
  }
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
      .first_token = first_token(),
      .vocab = all_tokens(),
  });
  access_.gradient_ready(table_.token_embedding);
  if (position >= 0) access_.gradient_ready(position);
}

}  // namespace zl
