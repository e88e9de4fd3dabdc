// The 1-bit all-reduce of Tang et al. (2021): signs cross the wire, and what they do not
// say is kept on both sides and said later. Every parameter has a scale of its own; padding is
// neither counted nor changed. Chunk r of a parameter's message is chunk r of the partition, so the
// result of rank r's part is at hand where ZeRO-1 updates it.
// Ownership: owns the errors (optimizer memory); refers to context and partition. Threads: one
// rank's thread.
#pragma once

#include <vector>

#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"

namespace zl {

class CompressedAllReduce {
 public:
  enum class Scale { per_parameter, shared };

  CompressedAllReduce(RankContext& context, const Partition& partition, Scale scale);

  // values (f32, a flat full buffer of the partition) = the ranks' average as far as signs have
  // said it. After any number of calls the sum of all results is that of all averages less the mean
  // worker error and the server error, element by element. Per rank, a call sends for each
  // parameter 2 (N-1) ceil(chunk / 8) bytes (group data: 1/16 of a 16-bit all-reduce where chunks
  // are whole bytes) and 8 (N-1) bytes of scales (group control). One rank: values stay as they
  // are.
  void run(const TensorView& values);
  void clear_errors();
  void archive(StateArchive& archive, const std::string& prefix);

  TensorView worker_error() const { return worker_error_; }  // f32 [full elements]
  TensorView server_error() const { return server_error_; }  // f32 [shard elements]

 private:
  struct Message {
    TensorView x;  // [rows, columns], what is said
    TensorView packed;
    std::int64_t count = 0;  // real elements
  };
  // Of one call: packed signs on their way out and in, and scales.
  struct Buffers {
    Tensor sent, received, scales, all_scales, bounds, squares;
  };

  int parameters() const { return static_cast<int>(partition_.size()); }
  Buffers allocate_buffers();
  // Of one parameter: u8 [ranks, bytes of a chunk].
  TensorView message_of(const TensorView& buffer, int parameter) const;
  void compress(const std::vector<Message>& messages, const Buffers& buffers);
  void measure(const std::vector<Message>& messages, const Buffers& buffers);
  void share_scales(const Buffers& buffers);

  RankContext& context_;
  const Partition& partition_;
  Scale scale_;
  std::vector<std::int64_t> offsets_;  // of each parameter's message in a buffer, bytes
  std::int64_t message_bytes_ = 0;
  Tensor worker_error_, server_error_;
};

}  // namespace zl
