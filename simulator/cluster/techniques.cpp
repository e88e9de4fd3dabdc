#include "simulator/cluster/techniques.h"

#include <iterator>

#include "core/train/strategy.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

constexpr const char* kTechniqueNames[] = {"zero-0", "zero-1",      "zero-2",   "zero-3",
                                           "copies", "tensor",      "pipeline", "offload",
                                           "files",  "compression", "sparse"};
static_assert(std::size(kTechniqueNames) == kTechniques);

}  // namespace

const char* name_of(Technique technique) {
  return kTechniqueNames[static_cast<std::size_t>(technique)];
}

Techniques techniques_of(const Strategy& strategy) {
  Techniques used;
  const auto add = [&used](Technique technique, bool is_used) {
    if (is_used) used.set(static_cast<std::size_t>(technique));
  };
  const ZeroConfig& zero = strategy.zero;
  used.set(static_cast<std::size_t>(zero.stage));
  add(Technique::copies, zero.replicas > 1 || zero.secondary_partition > 1);
  add(Technique::tensor, strategy.tensor.ranks > 1);
  add(Technique::pipeline, strategy.pipeline.ranks > 1);
  add(Technique::offload, strategy.offload.any());
  add(Technique::files, strategy.offload.files());
  add(Technique::compression,
      is_onebit(strategy.optimizer.kind) || zero.quantized_weights || zero.quantized_gradients);
  add(Technique::sparse, strategy.sparse_attention.mode != SparseMode::dense);
  return used;
}

Techniques read_techniques(JsonObject& object, const char* key) {
  Techniques techniques;
  for (const std::size_t technique : object.choices(key, kTechniqueNames)) {
    techniques.set(technique);
  }
  return techniques;
}

}  // namespace zl::sim
