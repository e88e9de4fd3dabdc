#include "scenarios/planner/software_limits.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "scenarios/launch/torchtitan_terms.h"

namespace zl {

// The same as the checks of scenarios/launch, which say why; where a software has no launch file,
// as its papers and documents have it.
struct SoftwareLimits::Abilities {
  enum class Schedules : std::uint8_t { none, megatron, torchtitan };
  enum class Offloads : std::uint8_t { none, all_of_stage_3, any };
  enum class Recomputes : std::uint8_t { blocks, activation, megatron, megatron_2021 };
  const char* software;
  bool has_tensor = false, has_copies = false;
  std::uint8_t states = 0, piped_states = 0;  // ZeRO stages, bits; of the latter none: no pipeline
  Schedules schedules = Schedules::none;
  Offloads offloads = Offloads::none;
  Recomputes recomputes = Recomputes::blocks;
};

namespace {

using Schedules = SoftwareLimits::Abilities::Schedules;
using Offloads = SoftwareLimits::Abilities::Offloads;
using Recomputes = SoftwareLimits::Abilities::Recomputes;

constexpr std::uint8_t stages(std::initializer_list<int> all) {
  std::uint8_t bits = 0;
  for (const int stage : all) bits = static_cast<std::uint8_t>(bits | 1 << stage);
  return bits;
}

bool has_offload(Offloads offloads, const Strategy& state) {
  if (!state.offload.any() || offloads == Offloads::any) return true;
  return offloads == Offloads::all_of_stage_3 && state.zero.stage == 3 &&
         state.offload.optimizer == Tier::cpu && state.offload.parameters == Tier::cpu;
}

bool has_recompute(Recomputes recomputes, const RecomputeConfig& config) {
  const bool is_megatron =
      recomputes == Recomputes::megatron || recomputes == Recomputes::megatron_2021;
  switch (config.mode) {
    case RecomputeMode::none:
      return true;
    case RecomputeMode::full:
      return recomputes != Recomputes::activation;
    case RecomputeMode::selective:
      if (recomputes == Recomputes::activation) return config.activation && !config.attention;
      return recomputes == Recomputes::megatron && !config.activation;
    case RecomputeMode::every_k:
    case RecomputeMode::automatic:
    case RecomputeMode::first_blocks:
      return is_megatron;
  }
  return false;
}

constexpr std::array<SoftwareLimits::Abilities, 8> kAbilities{{
    {.software = "deepspeed", .states = stages({0, 1, 2, 3}), .offloads = Offloads::any},
    {.software = "megatron-core",
     .has_tensor = true,
     .has_copies = true,
     .states = stages({0, 1, 2, 3}),
     .piped_states = stages({0, 1}),
     .schedules = Schedules::megatron,
     .recomputes = Recomputes::megatron},
    {.software = "megatron-deepspeed-2021",
     .has_tensor = true,
     .states = stages({0, 1, 2, 3}),
     .piped_states = stages({0, 1}),
     .schedules = Schedules::megatron,
     .recomputes = Recomputes::megatron_2021},
    {.software = "torch-ddp", .states = stages({0, 1})},
    {.software = "torch-fsdp1-2023",
     .has_copies = true,
     .states = stages({0, 2, 3}),
     .offloads = Offloads::all_of_stage_3},
    {.software = "torch-fsdp2",
     .has_tensor = true,
     .has_copies = true,
     .states = stages({0, 2, 3}),
     .piped_states = stages({1}),
     .schedules = Schedules::torchtitan,
     .offloads = Offloads::all_of_stage_3},
    {.software = "torch-fsdp2-compile",
     .has_tensor = true,
     .has_copies = true,
     .states = stages({0, 2, 3}),
     .piped_states = stages({1}),
     .schedules = Schedules::torchtitan,
     .offloads = Offloads::all_of_stage_3},
    {.software = "llm.c", .states = stages({0, 1}), .recomputes = Recomputes::activation},
}};

}  // namespace

SoftwareLimits::SoftwareLimits(const std::string& software, const ModelConfig& model,
                               const sim::PlanSpace& space)
    : model_(model), space_(space), abilities_(nullptr) {
  for (const Abilities& each : kAbilities) {
    if (software == each.software) abilities_ = &each;
  }
}

bool SoftwareLimits::allow(const sim::PlanPoint& point,
                           const sim::PlanSpace::Division& division) const {
  return !any() ||
         (has_mesh(point, division) && has_state(point, division) && has_pipeline(point) &&
          has_recompute(abilities_->recomputes, space_.recompute[point.recompute]));
}

// torchtitan's mixed precision is FSDP's, and its tensor groups cut sequences.
bool SoftwareLimits::has_mesh(const sim::PlanPoint& point,
                              const sim::PlanSpace::Division& division) const {
  const bool has_group = space_.tensor[point.tensor] > 1;
  if (has_group && !abilities_->has_tensor) return false;
  const std::int64_t replicas = space_.replicas[point.replicas];
  if (replicas > 1 && !abilities_->has_copies) return false;
  if (abilities_->schedules != Schedules::torchtitan) return true;
  const bool is_cut = has_group || space_.pipeline[point.pipeline] > 1;
  if (has_group && !space_.sequence_parallel[point.sequence_parallel]) return false;
  if (is_cut && division.data == 1) return false;
  return replicas == 1 || replicas < division.data;
}

bool SoftwareLimits::has_state(const sim::PlanPoint& point,
                               const sim::PlanSpace::Division& division) const {
  const Strategy& state = space_.states[point.state];
  if (!has_offload(abilities_->offloads, state)) return false;
  const bool is_piped = space_.pipeline[point.pipeline] > 1;
  const std::uint8_t states = is_piped ? abilities_->piped_states : abilities_->states;
  if ((states >> state.zero.stage & 1) == 0) return false;
  if (abilities_->schedules != Schedules::torchtitan) return true;
  // Its DDP stands alone, and of one rank nothing is sharded.
  if (state.zero.stage == 0) return space_.tensor[point.tensor] == 1;
  return division.data > 1;
}

bool SoftwareLimits::has_pipeline(const sim::PlanPoint& point) const {
  const std::int64_t pipeline = space_.pipeline[point.pipeline];
  if (pipeline == 1) return true;
  const std::int64_t chunks = space_.chunks[point.chunks], all = pipeline * chunks;
  const PipelineKind kind = space_.schedules[point.schedule];
  switch (abilities_->schedules) {
    case Schedules::none:
      return false;
    case Schedules::megatron:
      if (model_.layers % all != 0) return false;
      return chunks == 1 ? kind == PipelineKind::one_f_one_b : kind == PipelineKind::interleaved;
    case Schedules::torchtitan: {
      const std::int64_t each = (model_.layers + all - 1) / all;
      return !torchtitan_schedule(kind).empty() && has_several_stages(kind) == (chunks > 1) &&
             !model_.tied_embeddings && (model_.layers + each - 1) / each == all;
    }
  }
  return false;
}

}  // namespace zl
