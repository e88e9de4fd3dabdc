#include "core/model/kv_cache.h"

namespace zl {

KeyValueCache::KeyValueCache(RankContext& context, const ModelConfig& model, int slots,
                             std::int64_t capacity, DType dtype)
    : width_(model.kv_heads * model.head_size), slots_(slots), capacity_(capacity) {
  for (int layer = 0; layer < model.layers; ++layer) {
    layers_.push_back(context.allocate(dtype, {slots * capacity, 2 * width_}, MemoryTag::kv_cache,
                                       {"keys and values", layer + 1}));
  }
}

TensorView KeyValueCache::rows(int layer, int slot, std::int64_t first, std::int64_t count) const {
  return layers_[static_cast<std::size_t>(layer)].view.row_range(slot * capacity_ + first, count);
}

std::int64_t KeyValueCache::bytes_per_token(const ModelConfig& model, DType dtype) {
  return 2 * model.layers * model.kv_heads * model.head_size *
         static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace zl
