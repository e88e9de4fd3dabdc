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
  // micro.gradient[n,C]: of the block's output (x2 + dropout(add')) in, of its input x1 out.
  void mlp_backward(MicroBatch& micro, Kept& saved);
  void attention_backward(MicroBatch& micro, Kept& saved);

  Tensor activation(std::int64_t columns, const BatchGeometry& batch, const char* what);
  Tensor stream_activation(const BatchGeometry& batch, const char* what);
  Tensor statistics(std::int64_t count, const char* what);
  LinearWeights qkv() const { return {parameters_.qkv_weight, parameters_.qkv_bias}; }
  LinearWeights projection() const { return {parameters_.out_weight, parameters_.out_bias}; }
  LinearWeights up() const { return {parameters_.up_weight, parameters_.up_bias}; }
  LinearWeights down() const { return {parameters_.down_weight, parameters_.down_bias}; }
  // out = x W^T + b;  dx = dout W, and the gradients of W and b unless they wait.
  void linear(const TensorView& x, int weight, int bias, const TensorView& out);
  // The product of this rank's columns of x, added up over the group; the first one adds the bias.
  Tensor summed_linear(const TensorView& x, const LinearWeights& linear, const BatchGeometry& batch,
                       const char* what);
  // Backward of such a product up to its input: dout of all rows, held by `storage` (what dropout
  // left) and `all_rows`, whose time ends with the gradient of the weights.
  TensorView output_gradient(const MicroBatch& micro, DropoutSite site, Tensor& storage,
                             Tensor& all_rows);
  void put_off_output(MicroBatch& micro, const LinearWeights& linear, Tensor& storage,
                      Tensor& all_rows, Tensor& x);
  // The gradient of the norm whose output, of all the group's rows, made `dout`'s.
  Tensor column_backward(MicroBatch& micro, const LinearWeights& linear, Tensor& dout, Tensor& norm,
                         const char* what);
  void linear_backward(const MicroBatch& micro, const LinearWeights& linear, const TensorView& dout,
                       const TensorView& x, const TensorView& dx);
  // dx = dresidual + d(norm)/dx.
  void norm_backward(const TensorView& dout, const TensorView& x, int weight, int bias,
                     const Tensor& mean, const Tensor& rstd, const TensorView& dresidual,
                     const TensorView& dx);
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
