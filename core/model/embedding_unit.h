// Unit 0: token and position embeddings; of an encoder also segments, a norm over the sum, and
// dropout after that. Over a tensor group each rank looks up the tokens it holds
// (config: its own vocabulary), the first one adds the positions, and what they have is added up.
// Ownership: refers to context, access, configuration, group and table. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/tensor_group.h"
#include "core/model/unit.h"

namespace zl {

class EmbeddingUnit final : public ModelUnit {
 public:
  EmbeddingUnit(RankContext& context, ParameterAccess& access, const ModelConfig& config,
                const TensorGroup& group, const ParameterTable& table)
      : ModelUnit(0),
        context_(context),
        access_(access),
        config_(config),
        group_(group),
        table_(table) {}

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;

 private:
  struct Kept : Activations {  // of an encoder
    Tensor sum, mean, rstd;
  };
  // From the sum of tokens and positions to the encoder's stream, and back to its gradient.
  void add_segments_and_norm(MicroBatch& micro);
  void norm_backward(MicroBatch& micro);
  // The dropout of the sum itself, of which nothing is left where it comes later.
  bool drops_sum() const { return !group_.has_others() && !config_.encoder; }
  DropoutSpec dropout(const BatchGeometry& batch) const;
  // Rows of sequences of `sequence` tokens, or one that begins at its position.
  void embed(const MicroBatch& micro, const CachedRows& rows, std::int64_t sequence,
             const TensorView& out);
  // What a row of the table is multiplied by, in the type of the weights.
  double scale(DType dtype) const;
  // The first token that this rank holds, and how many the group does; 0: all are here.
  std::int64_t first_token() const { return group_.shard().rank * config_.vocab; }
  std::int64_t all_tokens() const {
    return group_.has_others() ? group_.shard().ranks * config_.vocab : 0;
  }

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const TensorGroup& group_;
  const ParameterTable& table_;
};

}  // namespace zl
