// Unit 0: token and position embeddings. Over a tensor group each rank looks up the tokens it holds
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
  DropoutSpec dropout(const BatchGeometry& batch) const;
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
