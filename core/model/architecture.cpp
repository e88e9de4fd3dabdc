#include "core/model/architecture.h"

#include "core/model/block.h"
#include "core/model/embedding_unit.h"
#include "core/model/head_unit.h"

namespace zl {

std::vector<std::unique_ptr<ModelUnit>> make_units(RankContext& context, ParameterAccess& access,
                                                   const ModelConfig& config,
                                                   const ParameterTable& table) {
  std::vector<std::unique_ptr<ModelUnit>> units;
  units.push_back(std::make_unique<EmbeddingUnit>(context, access, config, table));
  int number = 1;
  for (const BlockParameters& parameters : table.blocks) {
    units.push_back(std::make_unique<Block>(context, access, config, parameters, number++));
  }
  units.push_back(std::make_unique<HeadUnit>(context, access, config, table));
  return units;
}

}  // namespace zl
