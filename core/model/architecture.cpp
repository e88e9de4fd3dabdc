#include "core/model/architecture.h"

#include "core/model/block.h"
#include "core/model/embedding_unit.h"
#include "core/model/head_unit.h"

namespace zl {

std::vector<std::unique_ptr<ModelUnit>> make_units(RankContext& context, ParameterAccess& access,
                                                   const ModelConfig& config,
                                                   const TensorGroup& group,
                                                   const ParameterTable& table, int begin,
                                                   int end) {
  std::vector<std::unique_ptr<ModelUnit>> units;
  for (int number = begin; number < end; ++number) {
    if (number == 0) {
      units.push_back(std::make_unique<EmbeddingUnit>(context, access, config, group, table));
    } else if (number == table.head_unit()) {
      units.push_back(std::make_unique<HeadUnit>(context, access, config, group, table));
    } else {
      units.push_back(std::make_unique<Block>(context, access, config, group,
                                              table.blocks[number - 1], number));
    }
  }
  return units;
}

}  // namespace zl
