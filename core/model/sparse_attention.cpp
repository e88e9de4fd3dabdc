#include "core/model/sparse_attention.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/model/block_layouts.h"

namespace zl {

BlockWindow block_window(const SparseAttentionConfig& config) {
  if (config.mode != SparseMode::local_sliding || config.bidirectional) return {};
  return {config.block, config.num_sliding_window_blocks / 2};
}

SparseAttention::SparseAttention(RankContext& context, const SparseAttentionConfig& config,
                                 const SparseShare& share, std::int64_t sequence)
    : heads_(share.heads), causal_(!config.bidirectional), by_layer_(differs_by_layer(config)) {
  for (const std::int64_t layer : share.layers) {
    if (!by_layer_ && !layers_.empty()) break;
    BlockTable table = block_table(block_layouts(config, {.sequence = sequence,
                                                          .first_head = share.first_head,
                                                          .heads = share.heads,
                                                          .layer = by_layer_ ? layer : 0}),
                                   causal_);
    const Shape shape{static_cast<std::int64_t>(table.words.size())};
    Tensor words = context.allocate(DType::i32, shape, MemoryTag::staging, {"blocks of attention"});
    layers_.push_back({layer, std::move(table), std::move(words)});
  }
  for (const Layer& layer : layers_) {
    context.upload(StreamId::compute, layer.words, layer.table.words.data());
  }
}

const SparseAttention::Layer& SparseAttention::at(std::int64_t layer) const {
  if (!by_layer_) return layers_.front();
  const auto found = std::find_if(layers_.begin(), layers_.end(),
                                  [layer](const Layer& each) { return each.number == layer; });
  ZL_CHECK(found != layers_.end(), "a layer of this rank");
  return *found;
}

AttentionMask SparseAttention::mask(std::int64_t layer, const TensorView& lengths) const {
  const Layer& own = at(layer);
  return AttentionMask::sparse(own.words, own.table, heads_, causal_, lengths);
}

}  // namespace zl
