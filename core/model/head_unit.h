// The last unit: final norm, language-model head and loss. The forward makes the norm only. The
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

 private:
  struct Kept : Activations {
    Tensor mean, rstd, out;
  };
  // Logits and losses of the rows; with `train` also the gradients of head and norm's output.
  void loss(MicroBatch& micro, bool train);
  // The losses of some rows from their logits; with `train` the logits become their gradients.
  void classify(CrossEntropy op);
  void norm_backward(MicroBatch& micro);
  TensorView weight(int parameter) {
    return parameter < 0 ? TensorView{} : access_.weight(parameter);
  }
  // Tokens of this rank that are no padding.
  std::int64_t held_tokens() const;
  std::int64_t logits_width() const;
  std::int64_t chunk_rows(const BatchGeometry& batch) const;

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const TensorGroup& group_;
  const ParameterTable& table_;
};

}  // namespace zl
