#include "simulator/held_memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/pipeline/pipeline_plan.h"
#include "simulator/held_moments.h"
#include "simulator/held_program.h"

namespace zl::sim {
namespace {

// Of one micro-batch of a chunk: until its backward; of a backward in halves, between them.
struct KeptBytes {
  std::int64_t all = 0, waiting = 0;
};

// For each chunk, the most that is kept beside the micro-batch whose backward begins.
std::vector<std::int64_t> most_beside(const Schedule& schedule,
                                      const std::vector<KeptBytes>& kept) {
  std::vector<std::int64_t> most(kept.size(), 0);
  std::int64_t now = 0;
  for (const Instruction& each : schedule.body) {
    const KeptBytes& chunk = kept[each.chunk];
    const bool halves = each.kind == InstructionKind::input_gradient;
    if (each.kind == InstructionKind::forward) now += chunk.all;
    if (halves || each.kind == InstructionKind::backward) {
      now -= chunk.all;
      most[each.chunk] = std::max(most[each.chunk], now);
    }
    if (halves) now += chunk.waiting;
    if (each.kind == InstructionKind::weight_gradient) now -= chunk.waiting;
  }
  return most;
}

void add_reserved(const HeldProgram& p, HeldMemory& held) {
  // Gradients of the step before leave segments behind that nothing as large as logits fits into.
  const std::int64_t gradients = shard_bytes(p.gradient * p.parameters, p.shards(2));
  const std::int64_t alive = held.peak().tag[static_cast<std::size_t>(MemoryTag::gradient)];
  const std::int64_t used = held.total() + std::max(gradients - alive, std::int64_t{0});
  held.reserved = std::llround(p.software.reserve * static_cast<double>(used));
  held.device = held.reserved + p.software.context + p.software.library;
}

HeldMemory held_by(HeldProgram p, int rank, const Schedule& schedule) {
  set_rank(p, rank);
  const PipelineConfig& config = p.strategy.pipeline;
  const std::vector<UnitRange> stages = split_units(p.model, config);
  const auto enter = [&](int chunk) -> const UnitRange& {
    const int stage = stage_of(config, rank, chunk);
    set_chunk(p, stage, stages[stage]);
    return stages[stage];
  };
  const int chunks = static_cast<int>(config.virtual_stages);
  std::vector<KeptBytes> kept;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    enter(chunk);
    kept.push_back({kept_bytes(p), p.layers * p.block.waiting * p.tokens});
  }
  const std::vector<std::int64_t> beside = most_beside(schedule, kept);
  HeldMemory held;
  held.rank = rank;
  std::int64_t most = -1;
  const TakeMoment take = [&](const std::string& when, HeldParts parts) {
    const std::int64_t bytes = sum(parts);
    if (bytes <= most) return;
    most = bytes;
    held.when = when;
    held.parts = std::move(parts);
  };
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    const UnitRange& units = enter(chunk);
    p.others = beside[chunk];
    backward_moments(p, std::max(units.begin, 1) - 1, take);
  }
  p.others = 0;
  step_moments(p, take);
  std::erase_if(held.parts, [](const HeldPart& part) { return part.bytes == 0; });
  std::ranges::stable_sort(held.parts, std::greater{}, &HeldPart::bytes);
  add_reserved(p, held);
  return held;
}

}  // namespace

TaggedBytes HeldMemory::peak() const {
  TaggedBytes bytes;
  for (const HeldPart& part : parts) bytes.tag[static_cast<std::size_t>(part.tag)] += part.bytes;
  return bytes;
}

std::string why_not_held(const ModelConfig& model, const Strategy& strategy,
                         const SoftwareMemory& software) {
  if (strategy.tensor.ranks * strategy.pipeline.ranks > 1 && !software.model_parallel) {
    return "tensor or pipeline parallelism";
  }
  if (strategy.offload.any() && !software.offloads) return "offload";
  if (std::ranges::count(software.stages, strategy.zero.stage) == 0) {
    return "ZeRO stage " + std::to_string(strategy.zero.stage) + ", which that software has not";
  }
  if (strategy.zero.secondary_partition > 1) return "secondary shards";
  if (model.encoder || model.head != HeadKind::next_token) return "encoders";
  if (strategy.sparse_attention.mode != SparseMode::dense) return "block-sparse attention";
  const OptimizerKind kind = strategy.optimizer.kind;
  if (kind != OptimizerKind::adam && kind != OptimizerKind::adamw) return "other optimizers";
  return "";
}

bool is_supported(const Strategy& strategy, const SoftwareMemory& software) {
  const RecomputeMode mode = recomputes_first_blocks(strategy.recompute.mode)
                                 ? RecomputeMode::full
                                 : strategy.recompute.mode;
  return !strategy.offload.any() &&
         std::ranges::count(software.supported_stages, strategy.zero.stage) > 0 &&
         std::ranges::count(software.supported_recompute, mode) > 0;
}

std::vector<HeldMemory> held_by_rank(const ModelConfig& model, const Strategy& strategy, int ranks,
                                     std::int64_t sequence, const SoftwareMemory& software) {
  if (const std::string why = why_not_held(model, strategy, software); !why.empty()) {
    throw Error(ErrorCode::invalid, "bytes under another software are not known of " + why);
  }
  const ModelConfig padded = padded_model(model, strategy, software);
  const HeldProgram program = held_program(padded, strategy, ranks, sequence, software);
  const auto plan = plan_pipeline(strategy.pipeline, strategy.gradient_accumulation);
  std::vector<HeldMemory> all;
  for (int rank = 0; rank < strategy.pipeline.ranks; ++rank) {
    all.push_back(held_by(program, rank, plan->schedules[rank]));
  }
  return all;
}

HeldMemory held_memory(const ModelConfig& model, const Strategy& strategy, int ranks,
                       std::int64_t sequence, const SoftwareMemory& software) {
  const auto all = held_by_rank(model, strategy, ranks, sequence, software);
  return *std::ranges::max_element(all, {}, &HeldMemory::device);
}

}  // namespace zl::sim
