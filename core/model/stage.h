// The units that one rank runs, in order, forward and backward: the whole model, or under a
// pipeline a part of it. Knows which layers are recomputed and what is entered when. Ownership:
// owns its units and what keeps their inputs elsewhere; refers to context and access. Threads: one
// rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/model/kept_inputs.h"
#include "core/model/parameter_access.h"
#include "core/model/recompute_plan.h"
#include "core/model/unit.h"

namespace zl {

class Stage {
 public:
  // recompute: its layers are the units that can be recomputed, which lie together. kept_inputs:
  // where the inputs of recomputed groups wait; null: on the device.
  Stage(RankContext& context, ParameterAccess& access,
        std::vector<std::unique_ptr<ModelUnit>> units, const RecomputePlan& recompute,
        std::unique_ptr<KeptInputs> kept_inputs = nullptr);

  // From the ids (or the stream) of the micro-batch to its stream; keeps what backward() needs.
  void forward(MicroBatch& micro);
  // From the loss (or the gradient) to all gradients of the stage's parameters, and to the gradient
  // of what the stage took.
  void backward(MicroBatch& micro);
  // The same in two halves. The first makes the gradient of what the stage took, and those of
  // weights that one op makes with it or that would need the logits again: norms, embedding, head.
  // The second makes those of the blocks' linear layers, for which their inputs and the gradients
  // of their outputs stay until then: e s b (4h + a hd + f + qkv + f_in) bytes a block
  // (Qi et al. 2024), of which two h are norms, and under sequence parallelism this rank's rows.
  void input_gradient(MicroBatch& micro);
  void weight_gradient(MicroBatch& micro);
  // Forward and, where the model ends here, loss without gradients; nothing is kept.
  void evaluate(MicroBatch& micro);
  // Forward of rows that extend a cache, or of an encoder's sequences, and the logits of some of
  // them (LossUnit::logits); the whole model. Nothing but the cache is kept.
  void extend(MicroBatch& micro, const std::vector<std::int64_t>& rows, const TensorView& logits);

  // The order in which one micro-batch enters the units, for prefetchers.
  std::vector<Visit> forward_visits() const;
  std::vector<Visit> backward_visits() const;
  std::vector<Visit> evaluation_visits() const;

 private:
  using Group = RecomputePlan::Group;
  ModelUnit& layer(int index) const { return *layers_[index]; }
  void forward_unit(ModelUnit& unit, MicroBatch& micro);
  void forward_alone(MicroBatch& micro);
  void backward_unit(ModelUnit& unit, MicroBatch& micro);
  void forward_group(const Group& group, MicroBatch& micro);
  void bring_back(std::size_t group, MicroBatch& micro);
  void recompute_group(const Group& group, MicroBatch& micro);
  void backward_layer(ModelUnit& unit, MicroBatch& micro);

  RankContext& context_;
  ParameterAccess& access_;
  std::vector<std::unique_ptr<ModelUnit>> units_;
  std::vector<ModelUnit*> before_, layers_, after_;  // the layers, and the units around them
  LossUnit* loss_ = nullptr;                         // the last unit, where the model ends here
  RecomputePlan recompute_;
  std::unique_ptr<KeptInputs> away_;
};

}  // namespace zl
