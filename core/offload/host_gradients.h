// Reduced gradients that leave the device: this rank's chunks in host memory, filled bucket by
// bucket on the copy stream and added up there by the host (Ren et al. 2021).
// Ownership: owns the host buffers. Threads: one rank's thread.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "core/offload/offload_config.h"
#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"

namespace zl {

class HostGradients {
 public:
  // Of the parameters from first_parameter on, which must exist, kept as `dtype`. largest_take:
  // most elements of one take() that adds; 0 when none does.
  HostGradients(RankContext& context, const OffloadConfig& offload, DType dtype,
                const Partition& partition, int first_parameter, std::int64_t largest_take);

  bool holds(int parameter) const { return parameter >= first_parameter_; }

  struct Chunk {
    int parameter;
    TensorView view;  // on the device, in the accumulation type
  };
  // Copies chunks that the producer has been told to make; `add`: to what is there. After the
  // returned event (of copy_out) the chunks may be overwritten.
  EventId take(StreamId producer, const std::vector<Chunk>& chunks, bool add);
  // Later work of the host stream sees all that was taken.
  void arrive();

  // Their largest magnitude into bound[0] on the device (max with it when accumulate), for the
  // global AbsMax; then, with the global bound, the squares of some ranges of all() added to parts
  // (SquaredSum's f64[2]).
  void add_bound(const TensorView& bound, bool accumulate);
  void add_squares(const TensorView& bound, const TensorView& parts, std::int64_t total_count,
                   const std::vector<TensorView>& ranges, bool accumulate);
  // ClipFactor's factor to the host, where later work of the host stream finds it until the next
  // add_squares.
  TensorView bring(const TensorView& factor);

  // A parameter's chunk, and all of them, in the buffer that is being filled.
  TensorView owned(int parameter) const;
  TensorView all() const;
  // Elements from the first buffer to the one that is being filled.
  std::int64_t shift() const { return current_ * elements_; }
  // The next micro-batch fills the other buffer, while the host still reads this one.
  void swap() { current_ = buffers_ - 1 - current_; }

 private:
  struct Slot {
    Tensor storage;
    EventId free = -1;  // of the host stream: what was staged has been added
  };

  RankContext& context_;
  const Partition& partition_;
  int first_parameter_;
  std::int64_t begin_, elements_;  // of the shard buffers
  std::int64_t buffers_, current_ = 0;
  Tensor shards_;
  std::array<Slot, 2> staging_;
  Tensor bound_, squares_;                    // on the host
  Tensor arriving_bound_, arriving_squares_;  // on the device
  std::size_t next_slot_ = 0;
};

}  // namespace zl
