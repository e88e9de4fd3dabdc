// Keys and values of sequences that are generated: what attention sees of the tokens before.
// Ownership: owns its tensors. Threads: one rank's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/model/model_config.h"
#include "core/ops/columns_view.h"
#include "core/rank/rank_context.h"

namespace zl {

// Rows [first_row, first_row + count) of a micro-batch: tokens of the sequence in `slot`, from
// `position` on.
struct CachedRows {
  std::int64_t first_row = 0, count = 0;
  int slot = 0;
  std::int64_t position = 0;
};

// Attention by blocks of positions: a query sees those of its own block before it and of the
// `behind` blocks before that. block 0: it sees all before it.
struct BlockWindow {
  std::int64_t block = 0, behind = 0;

  std::int64_t first_key(std::int64_t position) const {
    return block == 0 ? 0 : std::max<std::int64_t>(0, position / block - behind) * block;
  }
  // Of the positions from `position` on, before `end`, how many see keys from the same one on.
  std::int64_t alike(std::int64_t position, std::int64_t end) const {
    return block == 0 ? end - position : std::min(end, (position / block + 1) * block) - position;
  }
};

// Of every layer, [slots * room, 2 * kv_heads * head_size] in the compute type: keys, as they are
// after their rotation, then values. A layer with a window has room for no more than it sees; its
// position p lies in row p mod room of its slot.
class KeyValueCache {
 public:
  KeyValueCache(RankContext& context, const ModelConfig& model, int slots, std::int64_t capacity,
                DType dtype);

  // Positions of a slot in layer 0, 1, ...
  std::int64_t room(int layer) const { return rooms_[static_cast<std::size_t>(layer)]; }
  // Whether rows take the places of earlier ones of their sequence.
  bool turns(int layer, const CachedRows& rows) const {
    return rows.position + rows.count > room(layer);
  }
  // Rows [first, first + count) of a slot.
  TensorView rows(int layer, int slot, std::int64_t first, std::int64_t count) const;
  // Where positions [first, first + count) lie, in their order; count: no more than there is room
  // for.
  std::vector<TensorView> runs(int layer, int slot, std::int64_t first, std::int64_t count) const;
  int slots() const { return slots_; }
  std::int64_t capacity() const { return capacity_; }  // positions of a slot
  // Of a sequence of so many positions.
  static std::int64_t bytes(const ModelConfig& model, std::int64_t positions, DType dtype);
  // 2 layers kv_heads head_size element bytes; beyond a window its layer needs no more.
  static std::int64_t bytes_per_token(const ModelConfig& model, DType dtype);

 private:
  int slots_;
  std::int64_t capacity_;
  std::vector<std::int64_t> rooms_;  // by layer
  std::vector<Tensor> layers_;
};

// What a micro-batch adds to a cache; its rows lie one after the other, in this order.
struct CacheExtension {
  KeyValueCache* cache = nullptr;
  BlockWindow blocks = {};
  std::vector<CachedRows> rows;
};

}  // namespace zl
