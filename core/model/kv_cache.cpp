#include "core/model/kv_cache.h"

#include <algorithm>

namespace zl {
namespace {

std::int64_t room_of(const ModelConfig& model, std::int64_t layer, std::int64_t capacity) {
  const std::int64_t window = model.window_of(layer);
  return window > 0 ? std::min(window, capacity) : capacity;
}

}  // namespace

KeyValueCache::KeyValueCache(RankContext& context, const ModelConfig& model, int slots,
                             std::int64_t capacity, DType dtype)
    : slots_(slots), capacity_(capacity) {
  const std::int64_t width = 2 * model.kv_heads * model.head_size;
  for (int layer = 0; layer < model.layers; ++layer) {
    rooms_.push_back(room_of(model, layer, capacity));
    layers_.push_back(context.allocate(dtype, {slots * rooms_.back(), width}, MemoryTag::kv_cache,
                                       {"keys and values", layer + 1}));
  }
}

TensorView KeyValueCache::rows(int layer, int slot, std::int64_t first, std::int64_t count) const {
  return layers_[static_cast<std::size_t>(layer)].view.row_range(slot * room(layer) + first, count);
}

std::vector<TensorView> KeyValueCache::runs(int layer, int slot, std::int64_t first,
                                            std::int64_t count) const {
  std::vector<TensorView> all;
  const std::int64_t begin = first % room(layer);
  const std::int64_t behind = std::min(count, room(layer) - begin);
  if (behind > 0) all.push_back(rows(layer, slot, begin, behind));
  if (count > behind) all.push_back(rows(layer, slot, 0, count - behind));
  return all;
}

std::int64_t KeyValueCache::bytes(const ModelConfig& model, std::int64_t positions, DType dtype) {
  std::int64_t rows = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    rows += room_of(model, layer, positions);
  }
  return rows * (bytes_per_token(model, dtype) / model.layers);
}

std::int64_t KeyValueCache::bytes_per_token(const ModelConfig& model, DType dtype) {
  return 2 * model.layers * model.kv_heads * model.head_size *
         static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace zl
