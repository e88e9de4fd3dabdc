// Unit 0: token and position embeddings.
// Ownership: refers to context, access, configuration and table. Threads: one rank's thread.
#pragma once

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/unit.h"

namespace zl {

class EmbeddingUnit final : public ModelUnit {
 public:
  EmbeddingUnit(RankContext& context, ParameterAccess& access, const ModelConfig& config,
                const ParameterTable& table)
      : ModelUnit(0), context_(context), access_(access), config_(config), table_(table) {}

  void forward(MicroBatch& micro) override;
  void backward(MicroBatch& micro) override;

 private:
  DropoutSpec dropout(const BatchGeometry& batch) const;

  RankContext& context_;
  ParameterAccess& access_;
  const ModelConfig& config_;
  const ParameterTable& table_;
};

}  // namespace zl
