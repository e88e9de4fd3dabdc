// One transformer block: its ops forward and backward, and the activations between them.
//   x1 = x + dropout(add);  a = norm1(x1);  q,k,v = a Wqkv;  (rope)  o = attention(q,k,v)
//   x2 = x1 + dropout(o Wout);  b = norm2(x2);  add' = act(b Wup) Wdown
// The output is the pair (x2, add'): the addition is fused into the next norm. x1 is all a
// recomputed block keeps. Pre-norm as GPT-2 and Llama. Ownership: activations own their tensors.
// Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/ops/attention.h"
#include "core/ops/dropout_spec.h"
#include "core/rank/rank_context.h"

namespace zl {

// What every block of a model shares for one micro-batch.
struct BatchGeometry {
  std::int64_t batch = 0, sequence = 0;
  DType dtype = DType::f32;
  std::uint64_t seed = 0;
  std::uint32_t micro_step = 0;   // optimizer step * accumulation + micro-batch: keys dropout
  std::int64_t first_sample = 0;  // global index of this rank's first sequence in the micro-batch
  bool drop_attention = false, drop_activation = false;  // selective recomputation

  std::int64_t rows() const { return batch * sequence; }
};

// The stream between units: value = x + dropout(add); add is absent after the embedding. `x`
// belongs to `owned`, or to the activations of the block that made it.
struct ResidualPair {
  TensorView x;
  Tensor owned, add;
};

struct BlockActivations {
  Tensor input;  // x1
  Tensor norm1, mean1, rstd1, qkv, lse, attention;
  Tensor x2, norm2, mean2, rstd2, up, act;
};

// The dropout sites of a unit; the embedding uses `embedding` of unit 0.
enum class DropoutSite : std::uint32_t {
  embedding = 0,
  attention = 1,
  attention_out = 2,
  mlp_out = 3
};
DropoutSpec dropout_spec(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                         std::int64_t elements_per_sample);

class Block {
 public:
  Block(RankContext& context, ParameterAccess& access, const ModelConfig& config,
        const BlockParameters& parameters, int unit);

  // Consumes `stream`; what the backward needs stays in `saved`. With `last_of_recompute` the
  // output is not needed and the MLP's last product is skipped.
  ResidualPair forward(ResidualPair stream, const BatchGeometry& batch, BlockActivations& saved,
                       bool last_of_recompute = false);
  // Recomputation from a kept input: as forward, with input already in saved.input.
  ResidualPair forward_from_input(const BatchGeometry& batch, BlockActivations& saved,
                                  bool last_of_recompute);

  // gradient[n,C]: of the block's output (x2 + dropout(add')) in, of its input x1 out, in place.
  // Frees `saved` as it goes.
  void backward(const TensorView& gradient, const BatchGeometry& batch, BlockActivations& saved);

 private:
  Tensor activation(std::int64_t columns, const BatchGeometry& batch, const char* what);
  Tensor statistics(std::int64_t count, const char* what);
  void attention_forward(const BatchGeometry& batch, BlockActivations& saved);
  void activation_forward(const BatchGeometry& batch, BlockActivations& saved);
  ResidualPair after_norm1(const BatchGeometry& batch, BlockActivations& saved, bool skip_output);
  void mlp_backward(const TensorView& gradient, const BatchGeometry& batch,
                    BlockActivations& saved);
  void attention_backward(const TensorView& gradient, const BatchGeometry& batch,
                          BlockActivations& saved);
  // out = x W^T + b;  dx = dout W, dW += dout^T x, db += sum of dout.
  void linear(const TensorView& x, int weight, int bias, const TensorView& out);
  void linear_backward(const TensorView& dout, const TensorView& x, int weight, int bias,
                       const TensorView& dx);
  void norm_backward(const TensorView& dout, const TensorView& x, int weight, int bias,
                     const Tensor& mean, const Tensor& rstd, const TensorView& gradient);
  // `gradient` itself, or its dropout in a new tensor held by `storage`.
  TensorView dropped(const TensorView& gradient, const BatchGeometry& batch, DropoutSite site,
                     Tensor& storage);
  AttentionShape attention_shape(const BatchGeometry& batch) const;
  TensorView weight(int parameter) {
    return parameter < 0 ? TensorView{} : access_.weight(parameter);
  }

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  BlockParameters parameters_;
  int unit_;
};

}  // namespace zl
