#include "simulator/cluster/software_abilities.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/text.h"
#include "simulator/cluster/zero_stages.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

// The value whose name the key has, in the order of the enumeration.
template <class Enum, std::size_t count>
Enum named(JsonObject& object, const char* key, const char* const (&names)[count]) {
  if (object.find(key) == nullptr) return Enum{};
  const std::string text = object.text(key);
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
    all += (i > 0 ? ", " : "") + std::string(names[i]);
  }
  object.fail(key, "\"" + shortened(text) + "\" is not one of " + all);
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
