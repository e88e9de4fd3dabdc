#include "simulator/cluster/software_abilities.h"

#include <span>

#include "simulator/cluster/zero_stages.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

// The value whose name the key has, in the order of the enumeration.
template <class Enum>
Enum named(JsonObject& object, const char* key, std::span<const char* const> names) {
  return object.find(key) == nullptr ? Enum{} : static_cast<Enum>(object.choice(key, names));
}

}  // namespace

SoftwareAbilities parse_software_abilities(JsonObject object) {
  constexpr const char* kPipelines[] = {"none", "megatron", "torchtitan"};
  constexpr const char* kOffload[] = {"none", "whole-stage-3", "any"};
  constexpr const char* kRecompute[] = {"blocks", "activation", "megatron", "megatron-2021",
                                        "torchtitan"};
  SoftwareAbilities abilities;
  abilities.tensor = object.boolean("tensor", false);
  abilities.copies = object.boolean("copies", false);
  abilities.stages = zero_stages(object, "stages");
  abilities.pipelines = named<SoftwareAbilities::Pipelines>(object, "pipelines", kPipelines);
  if (abilities.pipelines != SoftwareAbilities::Pipelines::none) {
    abilities.pipeline_stages = zero_stages(object, "pipeline_stages");
  }
  abilities.offload = named<SoftwareAbilities::Offload>(object, "offload", kOffload);
  abilities.recompute = named<SoftwareAbilities::Recompute>(object, "recompute", kRecompute);
  object.finish();
  return abilities;
}

}  // namespace zl::sim
