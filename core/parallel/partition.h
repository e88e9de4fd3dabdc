// Which rank owns which elements: every parameter is cut into N equal chunks, zero-padded at its
// tail. One partition serves all ZeRO stages; stages differ in what is sharded, when it
// is gathered and when it is dropped. Flat buffers hold all parameters one after the other in table
// order:
//   full  buffers: N * chunk elements per parameter;  shard buffers: chunk elements per parameter.
// Ownership: a value. Threads: immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/tensor.h"

namespace zl {

class Partition {
 public:
  struct Slot {
    std::int64_t count = 0;   // elements of the parameter
    std::int64_t chunk = 0;   // ceil(count / ranks)
    std::int64_t padded = 0;  // chunk * ranks
    std::int64_t full_offset = 0;
    std::int64_t shard_offset = 0;
  };

  // Of parameters with these element counts, over `ranks` ranks, as seen by `rank`.
  Partition(const std::vector<std::int64_t>& counts, int ranks, int rank);

  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  std::size_t size() const { return slots_.size(); }
  const Slot& slot(int parameter) const { return slots_[parameter]; }
  std::int64_t full_elements() const { return full_elements_; }
  std::int64_t shard_elements() const { return full_elements_ / ranks_; }

  // Views into a flat full buffer: the padded parameter, and this rank's chunk of it.
  TensorView padded(const TensorView& full, int parameter) const;
  TensorView chunk_of(const TensorView& full, int parameter) const;
  // View into a flat shard buffer: this rank's chunk.
  TensorView shard(const TensorView& shards, int parameter) const;
  // This rank's chunk inside one padded parameter.
  TensorView own_chunk(const TensorView& padded_parameter) const;
  // Real (not padding) elements of this rank's chunk, and the index of the first.
  std::int64_t owned_count(int parameter) const;
  std::int64_t owned_begin(int parameter) const { return slot(parameter).chunk * rank_; }

 private:
  int ranks_, rank_;
  std::vector<Slot> slots_;
  std::int64_t full_elements_ = 0;
};

}  // namespace zl
