// ZeRO stages 2 and 3: only this rank's chunks persist. Gradients are made in buckets,
// reduce-scattered as the backward goes (every micro-batch) and added into the chunks; a parameter
// larger than the bucket, or one that gets contributions far apart (a tied embedding), has a buffer
// of its own. With overlap_comm at most two buffers are on their way at a time.
// Ownership: owns chunks and buckets. Threads: one rank's thread.
#pragma once

#include <deque>
#include <list>
#include <vector>

#include "core/zero/gradient_store.h"
#include "core/zero/tensor_gradients.h"

namespace zl {

// What an allocation event says of a bucket's memory.
inline constexpr const char* kGradientBucket = "gradient bucket";

class ShardedGradients : public GradientStore {
 public:
  ShardedGradients(RankContext& context, const StoreConfig& config, const ParameterTable& table,
                   const Partition& partition);

  void begin_micro_batch(bool first, bool last) override;
  GradientTarget target(int parameter) override;
  void ready(int parameter) override;
  void end_micro_batch() override;
  void end_stage(int first, int end) override;
  TensorView owned(int parameter) override {
    return on_host(parameter) ? host_->owned(parameter) : partition_.shard(shards_, parameter);
  }

 private:
  struct Bucket {
    Tensor storage;
    std::int64_t used = 0;
    int unready = 0;  // parameters placed but not ready
    bool closed = false;
    std::vector<int> parameters;
  };
  struct InFlight {
    EventId event = -1;
    Tensor storage, wire;
    std::vector<Tensor> copies;
  };

  bool needs_own_buffer(int parameter) const;
  TensorView place(int parameter);
  Bucket& open_bucket(std::int64_t elements);
  void close(Bucket& bucket);
  void flush(std::list<Bucket>::iterator bucket);
  void retire(std::size_t keep);
  void make_shards();

  RankContext& context_;
  const StoreConfig config_;
  const ParameterTable& table_;
  const Partition& partition_;
  GradientReducer reducer_;
  Tensor shards_;
  std::int64_t bucket_capacity_;
  std::vector<TensorView> view_;  // per parameter: its padded gradient of this micro-batch
  std::list<Bucket> buckets_;
  std::deque<InFlight> in_flight_;
  bool first_ = true;  // micro-batch of the step
};

}  // namespace zl
