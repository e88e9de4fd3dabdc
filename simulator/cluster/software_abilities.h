// What a software can be told to do, as far as a search for plans has to know.
// Ownership: a value. Threads: value type.
#pragma once

#include <cstdint>
#include <vector>

namespace zl {
class JsonObject;
}

namespace zl::sim {

struct SoftwareAbilities {
  enum class Pipelines : std::uint8_t { none, megatron, torchtitan };
  enum class Offload : std::uint8_t { none, whole_stage_3, any };
  // blocks: whole ones; activation: of the MLP alone; megatron: any number of blocks, or attention
  // in all of them; megatron-2021: any number of blocks; torchtitan: whole blocks, or their
  // products.
  enum class Recompute : std::uint8_t { blocks, activation, megatron, megatron_2021, torchtitan };

  bool tensor = false;                       // tensor groups
  bool copies = false;                       // of sharded states
  std::vector<int> stages, pipeline_stages;  // of ZeRO, without and with a pipeline
  Pipelines pipelines = Pipelines::none;     // whose schedules
  Offload offload = Offload::none;           // to the host
  Recompute recompute = Recompute::blocks;
};

// The section `abilities` of a profile. Throws Error{invalid} naming the source and the key.
SoftwareAbilities parse_software_abilities(JsonObject object);

}  // namespace zl::sim
