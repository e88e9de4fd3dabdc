#include "core/parallel/partition.h"

#include <algorithm>

namespace zl {

Partition::Partition(const std::vector<std::int64_t>& counts, int ranks, int rank)
    : ranks_(ranks), rank_(rank) {
  for (const std::int64_t count : counts) {
    Slot slot;
    slot.count = count;
    slot.chunk = (slot.count + ranks - 1) / ranks;
    slot.padded = slot.chunk * ranks;
    slot.full_offset = full_elements_;
    slot.shard_offset = full_elements_ / ranks;
    full_elements_ += slot.padded;
    slots_.push_back(slot);
  }
}

TensorView Partition::padded(const TensorView& full, int parameter) const {
  return full.flat(slot(parameter).full_offset, slot(parameter).padded);
}

TensorView Partition::chunk_of(const TensorView& full, int parameter) const {
  return own_chunk(padded(full, parameter));
}

TensorView Partition::shard(const TensorView& shards, int parameter) const {
  return shards.flat(slot(parameter).shard_offset, slot(parameter).chunk);
}

TensorView Partition::own_chunk(const TensorView& padded_parameter) const {
  const std::int64_t chunk = padded_parameter.count() / ranks_;
  return padded_parameter.flat(chunk * rank_, chunk);
}

std::int64_t Partition::owned_count(int parameter) const {
  const Slot& s = slot(parameter);
  return std::clamp<std::int64_t>(s.count - owned_begin(parameter), 0, s.chunk);
}

}  // namespace zl
