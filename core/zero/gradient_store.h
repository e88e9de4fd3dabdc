// Where gradients live and how they are reduced, by ZeRO stage: kept whole (0, 1) or as chunks (2,
// 3). Ownership: owns the gradients. Threads: one rank's thread.
#pragma once

#include <memory>
#include <optional>

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/offload/host_gradients.h"
#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"
#include "core/zero/zero_config.h"

namespace zl {

class GradientStore {
 public:
  virtual ~GradientStore() = default;
  // `first`: gradients of this micro-batch overwrite; `last`: the accumulation boundary.
  virtual void begin_micro_batch(bool first, bool last) = 0;
  virtual GradientTarget target(int parameter) = 0;
  virtual void ready(int parameter) = 0;
  // All collectives of the micro-batch are enqueued and the compute stream waits for them.
  virtual void end_micro_batch() = 0;
  // The step has added all that it will to parameters [first, end), a stage's.
  virtual void end_stage(int /*first*/, int /*end*/) {}
  // After the last micro-batch, the reduced gradient of what this rank updates: [padded] in stage
  // 0, [chunk] otherwise.
  virtual TensorView owned(int parameter) = 0;
  // Whether the micro-batches to come are averaged over the ranks. Without, end_micro_batch leaves
  // this rank's own gradients in local(): a flat full buffer of the partition, empty where the
  // stage keeps chunks only.
  virtual void set_averaging(bool /*averages*/) {}
  virtual TensorView local() { return {}; }

  // The chunks that live on the host, where there are any.
  HostGradients* host() { return host_ ? &*host_ : nullptr; }

 protected:
  bool on_host(int parameter) const { return host_ && host_->holds(parameter); }

  std::optional<HostGradients> host_;
};

std::unique_ptr<GradientStore> make_gradient_store(RankContext& context, const StoreConfig& config,
                                                   const ParameterTable& table,
                                                   const Partition& partition);

// One reduction of several parameters, in the communication type: scale, cast if needed,
// collective, cast back. Enqueued on `stream`.
class GradientReducer {
 public:
  GradientReducer(RankContext& context, const StoreConfig& config, const Partition& partition)
      : context_(context), config_(config), partition_(partition) {}

  // padded: a whole padded gradient, reduced in place. destination: where this rank's chunk goes,
  // reduce-scatter only; it may be the chunk inside `padded`. add: to what is there.
  struct Item {
    TensorView padded, destination;
    bool add = false;
  };
  // Tensors that must live until the stream has passed this point are returned.
  Tensor all_reduce(StreamId stream, const std::vector<Item>& items);
  Tensor reduce_scatter(StreamId stream, const std::vector<Item>& items);

  // Reduced chunks of hybrid sharding, over its copies: in the accumulation type, in place.
  void average_replicas(StreamId stream, const std::vector<TensorView>& chunks);

  StreamId stream() const {
    return config_.zero.overlap_comm ? StreamId::communication : StreamId::compute;
  }

 private:
  // Views in the communication type: the gradients themselves, or copies in `storage`.
  std::vector<TensorView> to_wire(StreamId stream, const std::vector<Item>& items, Tensor& storage);
  Tensor quantized(StreamId stream, const std::vector<Item>& items);
  ReduceOp reduce_op() const;
  double scale_before() const;
  double scale_after() const;

  RankContext& context_;
  const StoreConfig config_;
  const Partition& partition_;
};

}  // namespace zl
