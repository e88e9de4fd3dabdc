// The last unit: final norm, language-model head and loss. The forward makes the norm only. The
// backward begins with logits, loss and their gradients, made and used chunk of rows by chunk, so
// that logits of the whole micro-batch are never held, and those of no two micro-batches at once.
// Ownership: refers to context, access, configuration and table. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/unit.h"

namespace zl {

class HeadUnit final : public LossUnit {
 public:
  HeadUnit(RankContext& context, ParameterAccess& access, const ModelConfig& config,
           const ParameterTable& table)
      : LossUnit(table.head_unit()),
        context_(context),
        access_(access),
        config_(config),
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
  void norm_backward(MicroBatch& micro);
  TensorView weight(int parameter) {
    return parameter < 0 ? TensorView{} : access_.weight(parameter);
  }
  std::int64_t logits_width() const;
  std::int64_t chunk_rows(const BatchGeometry& batch) const;

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const ParameterTable& table_;
};

}  // namespace zl
