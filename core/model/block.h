// One transformer block: its ops forward and backward, and the activations between them.
//   x1 = x + dropout(add);  a = norm1(x1);  q,k,v = a Wqkv;  (norm of q and k, rope)
//   o = attention(q,k,v)
//   x2 = x1 + dropout(o Wout);  b = norm2(x2);  add' = act(b Wup) Wdown
// Over a tensor group each rank has some heads and MLP columns (config: its own); Wout and Wdown
// make partial sums. Under sequence parallelism x1, x2 and the norms are of a part of the rows.
// The output is the pair (x2, add'): the addition is fused into the next norm. x1 is all a
// recomputed block keeps, and o where products alone are recomputed. Pre-norm as GPT-2 and Llama; a
// PostNormBlock is made of the same halves. Ownership: refers to context, access and configuration;
// what it keeps is the micro-batch's. Threads: one rank's thread.
#pragma once

#include <memory>

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/rotary.h"
#include "core/model/tensor_group.h"
#include "core/model/unit.h"
#include "core/ops/attention.h"

namespace zl {

class Block : public ModelUnit {
 public:
  Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
        const TensorGroup& group, const BlockParameters& parameters, std::shared_ptr<Rotary> rotary,
        int number);

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;

  bool can_recompute() const override { return true; }
  Tensor keep_output_only(MicroBatch& micro) override;
  void recompute(MicroBatch& micro, bool last) override;
  bool needs_recompute(MicroBatch& micro) override;
  void restore_input(MicroBatch& micro, Tensor&& input) override;

 protected:
  // What the two halves keep between their inputs and what they add to the stream.
  struct Halves : Activations {
    Tensor qkv, lse, attention;
    Tensor heads, heads_rstd;  // queries and keys before their norm
    Tensor up, act;
  };
  // All that is kept but, where the micro-batch keeps it, what attention gave. `saved` is gone.
  void forget_halves(MicroBatch& micro, Halves& saved);
  // o Wout of rows x; `what`: their name.
  Tensor attention_half(const BatchGeometry& batch, const TensorView& x, const char* what,
                        Halves& saved);
  // act(x Wup) Wdown; nothing with skip_output.
  Tensor mlp_half(const BatchGeometry& batch, const TensorView& x, const char* what, Halves& saved,
                  bool skip_output);
  // The gradient of the half's input x, from micro.gradient: that of what it added. What it kept is
  // gone, and of the MLP x too.
  Tensor mlp_half_backward(MicroBatch& micro, Halves& saved, Tensor& x, const char* what);
  // dqkv: what it leaves behind, for as long as the caller keeps it.
  Tensor attention_half_backward(MicroBatch& micro, Halves& saved, Tensor& x, Tensor& dqkv,
                                 const char* what);
  // dx = dresidual + d(norm)/dx.
  void norm_backward(const TensorView& dout, const TensorView& x, int weight, int bias,
                     const Tensor& mean, const Tensor& rstd, const TensorView& dresidual,
                     const TensorView& dx);
  Tensor stream_activation(const BatchGeometry& batch, const char* what);
  Tensor statistics(std::int64_t count, const char* what);
  DropoutSpec residual_dropout(const BatchGeometry& batch, int unit, DropoutSite site) const;
  const ModelConfig& config() const { return config_; }
  const BlockParameters& parameters() const { return parameters_; }
  RankContext& context() { return context_; }
  TensorView weight(int parameter) {
    return parameter < 0 ? TensorView{} : access_.weight(parameter);
  }

 private:
  struct Kept : Halves {  // input is x1
    Tensor norm1, mean1, rstd1;
    Tensor x2, norm2, mean2, rstd2;
  };
  Kept& kept(MicroBatch& micro) const { return micro.kept<Kept>(number()); }
  virtual Halves& halves(MicroBatch& micro) const { return kept(micro); }

  // Consumes the stream. With `last_of_recompute` there is no output: the MLP's last product is
  // skipped.
  ResidualPair run_forward(ResidualPair stream, const BatchGeometry& batch, Kept& saved,
                           bool last_of_recompute);
  // From saved.input.
  ResidualPair forward_from_input(const BatchGeometry& batch, Kept& saved, bool last_of_recompute);
  ResidualPair after_norm1(const BatchGeometry& batch, Kept& saved, bool skip_output);
  // Norm and rotary positions of queries and keys, and what the first needs for its backward.
  void heads_forward(const BatchGeometry& batch, Halves& saved);
  void heads_backward(const BatchGeometry& batch, Halves& saved, const TensorView& dqkv);
  void norm_heads(const BatchGeometry& batch, Halves& saved);
  void rotate(const AttentionShape& shape, const TensorView& qkv, bool inverse);
  void attention_forward(const BatchGeometry& batch, Halves& saved);
  void attend_to_cache(const BatchGeometry& batch, Halves& saved);
  void keep(const BatchGeometry& batch, CachedRows rows, const Halves& saved);
  void attend_to_kept(const BatchGeometry& batch, CachedRows rows, Halves& saved);
  void attend_through_window(const BatchGeometry& batch, const CachedRows& rows, Halves& saved);
  void attend(const BatchGeometry& batch, const CachedRows& rows, const TensorView& keys,
              const AttentionMask& mask, Halves& saved);
  void activation_forward(const BatchGeometry& batch, Halves& saved);
  // micro.gradient[n,C]: of the block's output (x2 + dropout(add')) in, of its input x1 out.
  void mlp_backward(MicroBatch& micro, Kept& saved);
  void attention_backward(MicroBatch& micro, Kept& saved);

  Tensor activation(std::int64_t columns, const BatchGeometry& batch, const char* what);
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
  Tensor overlapped_column_backward(const BatchGeometry& batch, const LinearWeights& linear,
                                    const TensorView& dout, const TensorView& norm,
                                    const char* what);
  Tensor column_backward(MicroBatch& micro, const LinearWeights& linear, Tensor& dout, Tensor& norm,
                         const char* what);
  void linear_backward(const MicroBatch& micro, const LinearWeights& linear, const TensorView& dout,
                       const TensorView& x, const TensorView& dx);
  // `gradient` itself, or its dropout in a new tensor held by `storage`.
  TensorView dropped(const TensorView& gradient, const BatchGeometry& batch, DropoutSite site,
                     Tensor& storage);
  DropoutSpec attention_dropout(const BatchGeometry& batch) const;
  AttentionShape attention_shape(const BatchGeometry& batch) const;
  AttentionMask attention_mask(const BatchGeometry& batch, std::int64_t keys) const;
  double attention_scale() const;
  double norm_offset() const { return config_.norm_plus_one ? 1 : 0; }

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const TensorGroup& group_;
  BlockParameters parameters_;
  std::shared_ptr<Rotary> rotary_;
};

}  // namespace zl
