// The whole model: embedding, blocks, final norm and head with the loss, forward and backward.
// The head works in chunks of rows: logits, loss and their gradients are made and used chunk by
// chunk, so that logits of the whole batch are never held. Ownership: owns the activations of the
// running micro-batch. Threads: one rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/model/block.h"
#include "core/model/kept_inputs.h"
#include "core/model/recompute_plan.h"

namespace zl {

class Transformer {
 public:
  Transformer(RankContext& context, ParameterAccess& access, const ModelConfig& config,
              const ParameterTable& table, const RecomputePlan& recompute,
              std::unique_ptr<KeptInputs> kept_inputs = nullptr);

  // tokens, targets: i32[batch * sequence]. Adds the loss, scaled by loss_weight / rows, to
  // loss[0]; starts the gradients with loss gradients scaled by gradient_scale / rows. Keeps what
  // backward() needs.
  void forward(const TensorView& tokens, const TensorView& targets, const BatchGeometry& batch,
               const TensorView& loss, double loss_weight, double gradient_scale);
  void backward();

  // As forward, but without gradients: adds the loss and keeps nothing.
  void evaluate(const TensorView& tokens, const TensorView& targets, const BatchGeometry& batch,
                const TensorView& loss, double loss_weight);

  // The order in which a micro-batch enters its units: what a prefetcher may rely on.
  std::vector<Visit> visits() const;

 private:
  ResidualPair embed(const TensorView& tokens);
  void blocks_forward(ResidualPair stream, const RecomputePlan::Group& group, ResidualPair& out);
  void bring_back(std::size_t group);
  void recompute_group(const RecomputePlan::Group& group);
  void block_backward(int layer);
  void final_norm(ResidualPair stream);
  void head(const TensorView& targets, const TensorView& loss, double loss_weight,
            double gradient_scale, bool train);
  void embedding_backward();
  std::int64_t logits_width() const;
  std::int64_t chunk_rows() const;

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const ParameterTable& table_;
  RecomputePlan recompute_;
  std::vector<Block> blocks_;

  BatchGeometry batch_;
  TensorView tokens_;
  std::vector<BlockActivations> saved_;
  std::unique_ptr<KeptInputs> away_;  // of recomputed groups; null: they stay on the device
  Tensor final_input_, final_mean_, final_rstd_, final_out_;
  Tensor gradient_;       // of the residual stream
  ResidualPair pending_;  // into the last block of a recomputed group
};

}  // namespace zl
