#include "simulator/cluster/software_memory.h"

#include <nlohmann/json.hpp>

#include "simulator/cluster/zero_stages.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

std::vector<RecomputeMode> read_recompute(JsonObject& object) {
  constexpr const char* kNames[] = {"none", "selective", "full"};
  constexpr RecomputeMode kModes[] = {RecomputeMode::none, RecomputeMode::selective,
                                      RecomputeMode::full};
  std::vector<RecomputeMode> modes;
  for (const std::size_t mode : object.choices("recompute", kNames)) {
    modes.push_back(kModes[mode]);
  }
  return modes;
}

// Either number is missing where there is nothing that it is of.
void read_error(JsonObject object, SoftwareMemory& memory) {
  memory.unsupported_error = object.positive("unsupported");
  memory.error = memory.unsupported_error;
  if (object.find("supported") != nullptr) {
    JsonObject supported = object.object("supported");
    memory.error = supported.positive("error");
    memory.supported_stages = zero_stages(supported, "stages");
    memory.supported_recompute = read_recompute(supported);
    supported.finish();
  }
  object.finish();
}

Fusion read_fusion(JsonObject& object, const char* key) {
  constexpr const char* kNames[] = {"ops", "fused"};
  return static_cast<Fusion>(object.choice(key, kNames));
}

void read_states(JsonObject object, SoftwareMemory& memory) {
  memory.weight = object.count("weight");
  memory.gradient = object.count("gradient");
  memory.moments = object.count("moments");
  memory.master = object.count("master", 0);
  memory.step_scratch = object.count("step_scratch", 0);
  memory.norm_scratch = object.count("norm_scratch", 0);
  memory.buckets = object.count("buckets", 0);
  memory.reduced = object.count("reduced", memory.reduced);
  memory.reduce_bucket = object.count("reduce_bucket", 0);
  object.finish();
}

void read_block(JsonObject object, SoftwareMemory& memory) {
  memory.compiled = object.boolean("compiled", false);
  memory.rms_norm = read_fusion(object, "rms_norm");
  if (object.find("gelu") != nullptr) memory.gelu = read_fusion(object, "gelu");
  memory.keeps_scores = object.boolean("keeps_scores", false);
  memory.repeats_heads = object.boolean("repeats_heads", false);
  memory.fused_activation = object.boolean("fused_activation", false);
  memory.attention_mask = object.boolean("attention_mask", false);
  memory.dummy_gradients = object.boolean("dummy_gradients", false);
  memory.kept_products = object.count("kept_products", 0);
  object.finish();
}

void read_logits(JsonObject object, SoftwareMemory& memory) {
  memory.logits_kept = object.count("kept");
  memory.logits_scratch = object.count("scratch");
  memory.loss_chunks = object.count("chunks", 1);
  if (memory.loss_chunks < 1) object.fail("chunks", "0 is not at least 1");
  object.finish();
}

void read_device(JsonObject object, SoftwareMemory& memory) {
  memory.workspace = object.bytes("workspace", 0);
  memory.context = object.bytes("context", 0);
  memory.library = object.bytes("library", 0);
  memory.reserve = object.number("reserve", 1.0);
  if (memory.reserve < 1) object.fail("reserve", "is less than what is in use (1)");
  object.finish();
}

}  // namespace

std::vector<int> zero_stages(JsonObject& object, const char* key) {
  constexpr int kStages = 4;
  const Json& list = object.at(key);
  if (!list.is_array() || list.empty()) object.fail(key, "is not a list of ZeRO stages");
  std::vector<int> stages;
  for (const Json& stage : list) {
    const bool known = stage.is_number_integer() && stage >= 0 && stage < kStages;
    if (!known) object.fail(key, shown(stage) + " is not one of 0, 1, 2, 3");
    stages.push_back(stage.get<int>());
  }
  return stages;
}

SoftwareMemory parse_software_memory(JsonObject object) {
  SoftwareMemory memory;
  memory.autocast = object.boolean("autocast", false);
  memory.stages = zero_stages(object, "stages");
  memory.gathers_from = static_cast<int>(object.count("gathers_from", memory.gathers_from));
  memory.reuses_gathered = object.boolean("reuses_gathered", false);
  memory.model_parallel = object.boolean("model_parallel", false);
  memory.offloads = object.boolean("offloads", false);
  memory.vocab_multiple = object.count("vocab_multiple", 1);
  if (memory.vocab_multiple < 1) object.fail("vocab_multiple", "0 is not at least 1");
  memory.flat_gradients = object.boolean("flat_gradients", false);
  memory.gradient_shards = object.boolean("gradient_shards", false);
  read_states(object.object("bytes_per_parameter"), memory);
  read_block(object.object("block"), memory);
  read_logits(object.object("bytes_per_logit"), memory);
  read_device(object.object("device"), memory);
  read_error(object.object("error"), memory);
  object.finish();
  return memory;
}

}  // namespace zl::sim
