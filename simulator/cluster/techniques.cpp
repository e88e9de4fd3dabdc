#include "simulator/cluster/techniques.h"

#include <algorithm>
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

std::vector<std::string> names_of(Techniques used) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kTechniques; ++i) {
    if (used.test(i)) names.emplace_back(kTechniqueNames[i]);
  }
  return names;
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

void add_to(TechniqueSets& sets, Techniques used) {
  if (covers(sets, used)) return;
  std::erase_if(sets, [used](Techniques set) { return (set & ~used).none(); });
  sets.push_back(used);
  std::ranges::sort(sets, {}, &Techniques::to_ulong);
}

bool covers(const TechniqueSets& sets, Techniques used) {
  return std::ranges::any_of(sets, [used](Techniques set) { return (used & ~set).none(); });
}

TechniqueSets read_technique_sets(JsonObject& object, const char* key) {
  TechniqueSets sets;
  for (const std::vector<std::size_t>& list : object.choice_lists(key, kTechniqueNames)) {
    Techniques used;
    for (const std::size_t technique : list) used.set(technique);
    add_to(sets, used);
  }
  return sets;
}

}  // namespace zl::sim
