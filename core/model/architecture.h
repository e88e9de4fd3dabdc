// Which units a model is made of, in order: the one place that knows the families.
// Ownership: units refer to what they are given. Threads: one rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/model/parameter_access.h"
#include "core/model/parameters.h"
#include "core/model/tensor_group.h"
#include "core/model/unit.h"

namespace zl {

// Units [begin, end) of a transformer: embedding, blocks, head. Decoders (GPT-2, Llama and its kin)
// are pre-norm, encoders (BERT) post-norm. config and table: of these units, and of this rank of
// the group.
std::vector<std::unique_ptr<ModelUnit>> make_units(RankContext& context, ParameterAccess& access,
                                                   const ModelConfig& config,
                                                   const TensorGroup& group,
                                                   const ParameterTable& table, int begin, int end);

}  // namespace zl
