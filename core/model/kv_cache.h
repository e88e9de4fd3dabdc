// Keys and values of sequences that are generated: what attention sees of the tokens before.
// Ownership: owns its tensors. Threads: one rank's thread.
#pragma once

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

// Of every layer, [slots * capacity, 2 * kv_heads * head_size] in the compute type: keys, as they
// are after their rotation, then values.
class KeyValueCache {
 public:
  KeyValueCache(RankContext& context, const ModelConfig& model, int slots, std::int64_t capacity,
                DType dtype);

  // The first `count` positions of a slot, in layer 0, 1, ...
  TensorView rows(int layer, int slot, std::int64_t first, std::int64_t count) const;
  ColumnsView keys(int layer, int slot, std::int64_t count) const {
    return {rows(layer, slot, 0, count), 0, width_};
  }
  ColumnsView values(int layer, int slot, std::int64_t count) const {
    return {rows(layer, slot, 0, count), width_, width_};
  }
  int slots() const { return slots_; }
  std::int64_t capacity() const { return capacity_; }  // positions of a slot
  // 2 layers kv_heads head_size element bytes.
  static std::int64_t bytes_per_token(const ModelConfig& model, DType dtype);

 private:
  std::int64_t width_;  // kv_heads * head_size
  int slots_;
  std::int64_t capacity_;
  std::vector<Tensor> layers_;
};

// What a micro-batch adds to a cache; its rows lie one after the other, in this order.
struct CacheExtension {
  KeyValueCache* cache = nullptr;
  std::vector<CachedRows> rows;
};

}  // namespace zl
