// One transformer block: its ops forward and backward, and the activations between them.
//   x1 = x + dropout(add);  a = norm1(x1);  q,k,v = a Wqkv;  (rope)  o = attention(q,k,v)
//   x2 = x1 + dropout(o Wout);  b = norm2(x2);  add' = act(b Wup) Wdown
// Over a tensor group each rank has some heads and MLP columns (config: its own); Wout and Wdown
// make partial sums. Under sequence parallelism x1, x2 and the norms are of a part of the rows.
// The output is the pair (x2, add'): the addition is fused into the next norm. x1 is all a
// recomputed block keeps. Pre-norm as GPT-2 and Llama. Ownership: refers to context,
// access and configuration; what it keeps is the micro-batch's. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/tensor_group.h"
#include "core/model/unit.h"
#include "core/ops/attention.h"

namespace zl {

class Block final : public ModelUnit {
 public:
  Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
        const TensorGroup& group, const BlockParameters& parameters, int number);

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;

  bool can_recompute() const override { return true; }
  Tensor keep_output_only(MicroBatch& micro) override;
  void recompute(MicroBatch& micro, bool last) override;
  bool needs_recompute(MicroBatch& micro) override;
  void restore_input(MicroBatch& micro, Tensor input) override;

 private:
  struct Kept : Activations {  // input is x1
    Tensor norm1, mean1, rstd1, qkv, lse, attention;
    Tensor x2, norm2, mean2, rstd2, up, act;
  };
  Kept& kept(MicroBatch& micro) const { return micro.kept<Kept>(number()); }

  // Consumes the stream. With `last_of_recompute` there is no output: the MLP's last product is
  // skipped.
  ResidualPair run_forward(ResidualPair stream, const BatchGeometry& batch, Kept& saved,
                           bool last_of_recompute);
  // From saved.input.
  ResidualPair forward_from_input(const BatchGeometry& batch, Kept& saved, bool last_of_recompute);
  ResidualPair after_norm1(const BatchGeometry& batch, Kept& saved, bool skip_output);
  void attention_forward(const BatchGeometry& batch, Kept& saved);
  void activation_forward(const BatchGeometry& batch, Kept& saved);
  // gradient[n,C]: of the block's output (x2 + dropout(add')) in, of its input x1 out, in place.
  void mlp_backward(const TensorView& gradient, const BatchGeometry& batch, Kept& saved);
  void attention_backward(const TensorView& gradient, const BatchGeometry& batch, Kept& saved);

  Tensor activation(std::int64_t columns, const BatchGeometry& batch, const char* what);
  Tensor stream_activation(const BatchGeometry& batch, const char* what);
  Tensor statistics(std::int64_t count, const char* what);
  // out = x W^T + b;  dx = dout W, dW += dout^T x, db += sum of dout.
  void linear(const TensorView& x, int weight, int bias, const TensorView& out);
  // The product of this rank's columns of x, added up over the group; the first one adds the bias.
  Tensor summed_linear(const TensorView& x, int weight, int bias, const BatchGeometry& batch,
                       const char* what);
  // dnorm: of the norm whose output, of the group's rows, made dout.
  Tensor column_backward(const TensorView& dout, const TensorView& norm, int weight, int bias,
                         const BatchGeometry& batch, const char* what);
  void linear_backward(const TensorView& dout, const TensorView& x, int weight, int bias,
                       const TensorView& dx);
  void norm_backward(const TensorView& dout, const TensorView& x, int weight, int bias,
                     const Tensor& mean, const Tensor& rstd, const TensorView& gradient);
  // `gradient` itself, or its dropout in a new tensor held by `storage`.
  TensorView dropped(const TensorView& gradient, const BatchGeometry& batch, DropoutSite site,
                     Tensor& storage);
  DropoutSpec residual_dropout(const BatchGeometry& batch, int unit, DropoutSite site) const;
  DropoutSpec attention_dropout(const BatchGeometry& batch) const;
  AttentionShape attention_shape(const BatchGeometry& batch) const;
  double attention_scale() const;
  TensorView weight(int parameter) {
    return parameter < 0 ? TensorView{} : access_.weight(parameter);
  }

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const TensorGroup& group_;
  BlockParameters parameters_;
};

}  // namespace zl
