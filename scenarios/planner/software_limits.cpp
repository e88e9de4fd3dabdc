#include "scenarios/planner/software_limits.h"

#include <algorithm>

#include "scenarios/files/clusters.h"
#include "scenarios/launch/torchtitan_terms.h"

namespace zl {

// The same as the checks of scenarios/launch, which say why.
namespace {

using Abilities = sim::SoftwareAbilities;

bool has_offload(Abilities::Offload offload, const Strategy& state) {
  if (!state.offload.any() || offload == Abilities::Offload::any) return true;
  return offload == Abilities::Offload::whole_stage_3 && state.zero.stage == 3 &&
         state.offload.optimizer == Tier::cpu && state.offload.parameters == Tier::cpu;
}

bool has_recompute(Abilities::Recompute recompute, const RecomputeConfig& config) {
  const bool is_megatron = recompute == Abilities::Recompute::megatron ||
                           recompute == Abilities::Recompute::megatron_2021;
  switch (config.mode) {
    case RecomputeMode::none:
      return true;
    case RecomputeMode::full:
      return recompute != Abilities::Recompute::activation;
    case RecomputeMode::selective:
      if (recompute == Abilities::Recompute::torchtitan) return config.products;
      if (recompute == Abilities::Recompute::activation) {
        return config.activation && !config.attention;
      }
      return recompute == Abilities::Recompute::megatron && config.attention && !config.activation;
    case RecomputeMode::every_k:
    case RecomputeMode::automatic:
    case RecomputeMode::first_blocks:
      return is_megatron;
  }
  return false;
}

std::optional<Abilities> abilities_of(const std::string& software) {
  return software.empty() ? std::nullopt : load_software(software).abilities;
}

}  // namespace

bool recomputes_products(const std::string& software) {
  const std::optional<Abilities> abilities = abilities_of(software);
  return abilities && abilities->recompute == Abilities::Recompute::torchtitan;
}

// torchtitan does where it is told so; its stages are cut as without it.
bool counts_ends(const std::string& software) {
  const std::optional<Abilities> abilities = abilities_of(software);
  return !abilities || abilities->pipelines == Abilities::Pipelines::megatron;
}

SoftwareLimits::SoftwareLimits(const std::string& software, const ModelConfig& model,
                               const sim::PlanSpace& space)
    : model_(model), space_(space), abilities_(abilities_of(software)) {}

bool SoftwareLimits::allow(const sim::PlanPoint& point,
                           const sim::PlanSpace::Division& division) const {
  return !any() ||
         (has_mesh(point, division) && has_state(point, division) && has_pipeline(point) &&
          has_recompute(abilities_->recompute, space_.recompute[point.recompute]));
}

// torchtitan's mixed precision is FSDP's, and its tensor groups cut sequences.
bool SoftwareLimits::has_mesh(const sim::PlanPoint& point,
                              const sim::PlanSpace::Division& division) const {
  const bool has_group = space_.tensor[point.tensor] > 1;
  if (has_group && !abilities_->tensor) return false;
  const std::int64_t replicas = space_.replicas[point.replicas];
  if (replicas > 1 && !abilities_->copies) return false;
  if (abilities_->pipelines != Abilities::Pipelines::torchtitan) return true;
  const bool is_cut = has_group || space_.pipeline[point.pipeline] > 1;
  if (has_group && !space_.sequence_parallel[point.sequence_parallel]) return false;
  if (is_cut && division.data == 1) return false;
  return replicas == 1 || replicas < division.data;
}

bool SoftwareLimits::has_state(const sim::PlanPoint& point,
                               const sim::PlanSpace::Division& division) const {
  const Strategy& state = space_.states[point.state];
  if (!has_offload(abilities_->offload, state)) return false;
  const bool is_piped = space_.pipeline[point.pipeline] > 1;
  const std::vector<int>& stages = is_piped ? abilities_->pipeline_stages : abilities_->stages;
  if (std::ranges::count(stages, state.zero.stage) == 0) return false;
  if (abilities_->pipelines != Abilities::Pipelines::torchtitan) return true;
  // Its DDP stands alone, and of one rank nothing is sharded.
  if (state.zero.stage == 0) return space_.tensor[point.tensor] == 1;
  return division.data > 1;
}

bool SoftwareLimits::has_pipeline(const sim::PlanPoint& point) const {
  const std::int64_t pipeline = space_.pipeline[point.pipeline];
  if (pipeline == 1) return true;
  const std::int64_t chunks = space_.chunks[point.chunks], all = pipeline * chunks;
  const PipelineKind kind = space_.schedules[point.schedule];
  switch (abilities_->pipelines) {
    case Abilities::Pipelines::none:
      return false;
    case Abilities::Pipelines::megatron:
      if (model_.layers % all != 0 && !is_even_by_units(model_.layers, all)) return false;
      return chunks == 1 ? kind == PipelineKind::one_f_one_b : kind == PipelineKind::interleaved;
    case Abilities::Pipelines::torchtitan: {
      const std::int64_t each = (model_.layers + all - 1) / all;
      return !torchtitan_schedule(kind).empty() && has_several_stages(kind) == (chunks > 1) &&
             !model_.tied_embeddings && (model_.layers + each - 1) / each == all;
    }
  }
  return false;
}

}  // namespace zl
