// A block whose norms follow the additions to the stream (Vaswani et al. 2017; BERT):
//   x1 = norm1(x + dropout(attention(x)));  out = norm2(x1 + dropout(mlp(x1)))
// Its output is one tensor. x is all a recomputed block keeps. Of one rank, not of a tensor group's
// part of the rows. Ownership: refers to context, access and configuration; what it keeps is the
// micro-batch's. Threads: one rank's thread.
#pragma once

#include "core/model/block.h"

namespace zl {

class PostNormBlock final : public Block {
 public:
  using Block::Block;

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;

  Tensor keep_output_only(MicroBatch& micro) override;
  void recompute(MicroBatch& micro, bool last) override;
  bool needs_recompute(MicroBatch& micro) override;
  void restore_input(MicroBatch& micro, Tensor&& input) override;

 private:
  struct Norm {
    Tensor sum, mean, rstd;  // what was normalised, and its statistics
  };
  struct Kept : Halves {
    Norm norm1, norm2;
    Tensor x1;
  };
  Kept& kept(MicroBatch& micro) const { return micro.kept<Kept>(number()); }
  Halves& halves(MicroBatch& micro) const override { return kept(micro); }
  // From saved.input.
  Tensor run_forward(const BatchGeometry& batch, Kept& saved);
  // norm(x + dropout(added)).
  Tensor add_and_norm(const BatchGeometry& batch, const TensorView& x, const TensorView& added,
                      DropoutSite site, const char* what, Norm& norm);
  // micro.gradient: of the norm's output in, of what it normalised out.
  void norm_gradient(MicroBatch& micro, Norm& norm, bool first);
};

}  // namespace zl
