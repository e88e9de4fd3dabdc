// The last unit of an encoder that tells each sequence's label: the first row is pooled,
//   p = dropout(tanh(x[0] Wp + bp));  logits = p Wc + bc
// and the loss is over one label a sequence (Devlin et al. 2019, section 4.1). RoBERTa drops x[0]
// too. Ownership: refers to context, access, configuration and table; what it keeps is the
// micro-batch's. Threads: one rank's thread.
#pragma once

#include "core/model/linear_gradient.h"
#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/unit.h"

namespace zl {

class LabelHead final : public LossUnit {
 public:
  LabelHead(RankContext& context, ParameterAccess& access, const ModelConfig& config,
            const ParameterTable& table)
      : LossUnit(table.head_unit()),
        context_(context),
        access_(access),
        config_(config),
        table_(table) {}

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;
  void evaluate(MicroBatch& micro) override;
  // rows: sequences of the micro-batch.
  void logits(MicroBatch& micro, const std::vector<std::int64_t>& rows,
              const TensorView& out) override;

 private:
  struct Kept : Activations {
    Tensor first, dense, pooled;  // [batch, hidden]: x[0], before and after tanh
  };
  Kept& kept(MicroBatch& micro) const { return micro.kept<Kept>(number()); }
  LinearWeights pooler() const { return {table_.dense_weight, table_.dense_bias}; }
  LinearWeights classifier() const { return {table_.head, table_.head_bias}; }
  Tensor sequences(const BatchGeometry& batch, std::int64_t columns, const char* what);
  // In place; nothing without dropout.
  void drop(const BatchGeometry& batch, DropoutSite site, const TensorView& rows);
  // out = x W^T + b.
  void linear(const TensorView& x, const LinearWeights& weights, const TensorView& out);
  // Logits and losses; with `train` the logits returned are their gradients.
  Tensor loss(MicroBatch& micro, bool train);

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const ParameterTable& table_;
};

}  // namespace zl
