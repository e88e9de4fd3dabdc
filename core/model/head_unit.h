// The last unit: final norm, language-model head and loss; of masked tokens a dense layer with its
// activation before the norm, and a bias of the logits. The forward goes up to the norm. The
// backward begins with logits, loss and their gradients, made and used chunk of rows by chunk, so
// that logits of the whole micro-batch are never held, and those of no two micro-batches at once.
// Over a tensor group each rank has the logits of the tokens it holds (config: its own vocabulary),
// and the ranks tell each other of every row what the softmax needs.
// Ownership: refers to context, access, configuration, group and table. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/tensor_group.h"
#include "core/model/unit.h"
#include "core/ops/loss.h"

namespace zl {

class HeadUnit final : public LossUnit {
 public:
  HeadUnit(RankContext& context, ParameterAccess& access, const ModelConfig& config,
           const TensorGroup& group, const ParameterTable& table)
      : LossUnit(table.head_unit()),
        context_(context),
        access_(access),
        config_(config),
        group_(group),
        table_(table) {}

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;
  void evaluate(MicroBatch& micro) override;
  void logits(MicroBatch& micro, const std::vector<std::int64_t>& rows,
              const TensorView& out) override;

 private:
  struct Kept : Activations {
    Tensor rows, dense;  // of the dense layer: its input and output
    Tensor mean, rstd, out;
  };
  bool has_dense() const { return table_.dense_weight >= 0; }
  LinearWeights dense() const { return {table_.dense_weight, table_.dense_bias}; }
  // From the stream to what is normalised, and back from its gradient.
  Tensor dense_forward(const BatchGeometry& batch, Kept& kept, Tensor rows);
  void dense_backward(MicroBatch& micro);
  // Logits and losses of the rows; with `train` also the gradients of head and norm's output.
  void loss(MicroBatch& micro, bool train);
  // The losses of some rows from their logits; with `train` the logits become their gradients.
  void classify(CrossEntropy op);
  void norm_backward(MicroBatch& micro);
  TensorView weight(int parameter) {
    return parameter < 0 ? TensorView{} : access_.weight(parameter);
  }
  double norm_offset() const { return config_.norm_plus_one ? 1 : 0; }
  // Tokens of this rank that are no padding.
  std::int64_t held_tokens() const;
  std::int64_t logits_width() const;
  bool is_padded() const { return logits_width() != config_.vocab; }
  std::int64_t chunk_rows(const BatchGeometry& batch) const;

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const TensorGroup& group_;
  const ParameterTable& table_;
};

}  // namespace zl
