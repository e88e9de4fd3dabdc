// Attention of the tokens that a cache is extended by.
#include <algorithm>

#include "core/model/block.h"
#include "core/ops/elementwise.h"

namespace zl {

// Each sequence by itself: they are of different lengths.
void Block::attend_to_cache(const BatchGeometry& batch, Halves& saved) {
  saved.attention = activation(config_.attention_width(), batch, "attention");
  saved.lse = statistics(batch.rows() * config_.heads, "attention log-sum-exp");
  norm_heads(batch, saved);
  for (const CachedRows& rows : batch.extension->rows) {
    AttentionShape shape = attention_shape(batch);
    shape.sequence = rows.count;
    shape.first_position = rows.position;
    rotate(shape, saved.qkv.view.row_range(rows.first_row, rows.count), false);
    if (batch.extension->cache->turns(number() - 1, rows) && rows.count > 1) {
      attend_through_window(batch, rows, saved);
      keep(batch, rows, saved);
    } else {
      keep(batch, rows, saved);
      attend_to_kept(batch, rows, saved);
    }
  }
}

// Of rows beyond what a layer's window keeps, the last ones alone.
void Block::keep(const BatchGeometry& batch, CachedRows rows, const Halves& saved) {
  const KeyValueCache& cache = *batch.extension->cache;
  const int layer = number() - 1;
  const std::int64_t passed = std::max<std::int64_t>(0, rows.count - cache.room(layer));
  rows.first_row += passed;
  rows.position += passed;
  rows.count -= passed;
  for (const TensorView& kept : cache.runs(layer, rows.slot, rows.position, rows.count)) {
    const TensorView qkv = saved.qkv.view.row_range(rows.first_row, kept.rows());
    context_.run(
        CopyColumns{{qkv, config_.attention_width(), kept.columns()}, {kept, 0, kept.columns()}});
    rows.first_row += kept.rows();
  }
}

// Rows that the cache has. A single one that has taken the place of the oldest sees all there are,
// in whatever order; others lie in the order of their positions.
void Block::attend_to_kept(const BatchGeometry& batch, CachedRows rows, Halves& saved) {
  const KeyValueCache& cache = *batch.extension->cache;
  const BlockWindow& blocks = batch.extension->blocks;
  const int layer = number() - 1;
  if (cache.turns(layer, rows)) rows.position = cache.room(layer) - 1;
  for (std::int64_t left = rows.count; left > 0; left -= rows.count) {
    rows.count = blocks.alike(rows.position, rows.position + left);
    const std::int64_t first = blocks.first_key(rows.position);
    const TensorView keys = cache.rows(layer, rows.slot, first, rows.position + rows.count - first);
    attend(batch, rows, keys, AttentionMask::causal(), saved);
    rows.first_row += rows.count;
    rows.position += rows.count;
  }
}

// Rows beside what the window's cache has of the positions before, which they will overwrite.
void Block::attend_through_window(const BatchGeometry& batch, const CachedRows& rows,
                                  Halves& saved) {
  const KeyValueCache& cache = *batch.extension->cache;
  const int layer = number() - 1;
  const std::int64_t before = std::min(rows.position, cache.room(layer) - 1);
  const TensorView qkv = saved.qkv.view.row_range(rows.first_row, rows.count);
  const std::int64_t width = 2 * config_.kv_heads * config_.head_size;
  const Tensor all = context_.allocate(batch.dtype, {before + rows.count, width},
                                       MemoryTag::workspace, {"keys of a window", number()});
  std::int64_t row = 0;
  for (const TensorView& kept : cache.runs(layer, rows.slot, rows.position - before, before)) {
    context_.run(CopyColumns{{kept, 0, width}, {all.view.row_range(row, kept.rows()), 0, width}});
    row += kept.rows();
  }
  context_.run(CopyColumns{{qkv, config_.attention_width(), width},
                           {all.view.row_range(before, rows.count), 0, width}});
  attend(batch, rows, all, attention_mask(batch, before + rows.count), saved);
}

// keys: those up to the last of the rows, with their values behind them.
void Block::attend(const BatchGeometry& batch, const CachedRows& rows, const TensorView& keys,
                   const AttentionMask& mask, Halves& saved) {
  AttentionShape shape = attention_shape(batch);
  shape.sequence = rows.count;
  shape.keys = keys.rows();
  shape.first_position = shape.keys - rows.count;
  const TensorView qkv = saved.qkv.view.row_range(rows.first_row, rows.count);
  const std::int64_t width = keys.columns() / 2;
  context_.run(AttentionForward{
      .qkv = {{qkv, 0, config_.attention_width()}, {keys, 0, width}, {keys, width, width}},
      .out = saved.attention.view.row_range(rows.first_row, rows.count),
      .lse = saved.lse.view.flat(rows.first_row * config_.heads, rows.count * config_.heads),
      .shape = shape,
      .scale = attention_scale(),
      .mask = mask});
}

}  // namespace zl
