#include "core/model/architecture.h"

#include "core/model/block.h"
#include "core/model/embedding_unit.h"
#include "core/model/head_unit.h"
#include "core/model/label_head.h"
#include "core/model/post_norm_block.h"
#include "core/model/rotary.h"

namespace zl {
namespace {

std::unique_ptr<ModelUnit> make_head(RankContext& context, ParameterAccess& access,
                                     const ModelConfig& config, const TensorGroup& group,
                                     const ParameterTable& table) {
  if (config.head == HeadKind::label) {
    return std::make_unique<LabelHead>(context, access, config, table);
  }
  return std::make_unique<HeadUnit>(context, access, config, group, table);
}

}  // namespace

std::vector<std::unique_ptr<ModelUnit>> make_units(RankContext& context, ParameterAccess& access,
                                                   const ModelConfig& config,
                                                   const TensorGroup& group,
                                                   const ParameterTable& table, int begin,
                                                   int end) {
  std::vector<std::unique_ptr<ModelUnit>> units;
  const auto rotary = std::make_shared<Rotary>(config);
  for (int number = begin; number < end; ++number) {
    if (number == 0) {
      units.push_back(std::make_unique<EmbeddingUnit>(context, access, config, group, table));
    } else if (number == table.head_unit()) {
      units.push_back(make_head(context, access, config, group, table));
    } else if (config.encoder) {
      units.push_back(std::make_unique<PostNormBlock>(context, access, config, group,
                                                      table.blocks[number - 1], rotary, number));
    } else {
      units.push_back(std::make_unique<Block>(context, access, config, group,
                                              table.blocks[number - 1], rotary, number));
    }
  }
  return units;
}

}  // namespace zl
