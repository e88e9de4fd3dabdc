#include "simulator/held_program.h"

#include <algorithm>

namespace zl::sim {
namespace {

constexpr std::int64_t kTokenBytes = 8;  // ids and their targets are 64-bit

// Bytes for each token that the layer keeps, of which more is computed again.
std::int64_t kept_again(const HeldProgram& program, std::int64_t layer) {
  const RecomputeConfig& recompute = program.strategy.recompute;
  if (recompute.mode == RecomputeMode::selective) return program.block.selective;
  const bool first = recompute.mode != RecomputeMode::every_k || layer % recompute.every == 0;
  return first ? program.block.input : 0;
}

}  // namespace

bool HeldProgram::gathers() const {
  const bool sharded = ranks > 1 && strategy.zero.stage >= 2;
  return !software.autocast && (element.compute < weight || sharded);
}

std::int64_t HeldProgram::block_matrices() const {
  return model.hidden * (model.qkv_width() + model.attention_width()) +
         model.hidden * (model.ffn_in_width() + model.ffn);
}

bool HeldProgram::is_again(std::int64_t layer) const {
  if (strategy.recompute.mode == RecomputeMode::none) return false;
  return !recomputes_first_blocks(strategy.recompute.mode) || layer < strategy.recompute.blocks;
}

HeldProgram held_program(const ModelConfig& model, const Strategy& strategy, int ranks,
                         std::int64_t sequence, const SoftwareMemory& software) {
  const DType compute = strategy.precision.compute_dtype;
  const ElementBytes element = element_bytes(compute, software);
  HeldProgram program{model, strategy, software, element, block_bytes(model, software, element)};
  program.tokens = strategy.micro_batch * sequence;
  program.sequence = sequence;
  program.ranks = ranks / strategy.zero.replicas;
  program.parameters = model.parameters();
  program.root_parameters = model.embedding_parameters() + model.head_parameters();
  program.block_parameters = (program.parameters - program.root_parameters) / model.layers;
  const bool is_16_bit = compute != DType::f32;
  program.weight = is_16_bit ? software.weight : kFloatBytes;
  program.gradient = is_16_bit ? software.gradient : kFloatBytes;
  program.moments = is_16_bit ? software.moments : 2 * kFloatBytes;
  program.scratch = software.step_scratch;
  return program;
}

std::int64_t shard_bytes(std::int64_t bytes, std::int64_t shards) {
  return (bytes + shards - 1) / shards;
}

HeldParts state_parts(const HeldProgram& p) {
  const std::int64_t weights = p.weight * p.parameters;
  HeldParts parts = {
      {MemoryTag::parameter, "weights", shard_bytes(weights, p.gathers() ? p.shards(2) : 1)},
      {MemoryTag::optimizer, "moments", shard_bytes(p.moments * p.parameters, p.shards(1))},
      {MemoryTag::staging, "tokens and targets", 2 * kTokenBytes * p.tokens}};
  if (p.ranks > 1 && p.shards(2) == 1) {
    parts.push_back(
        {MemoryTag::communication, "flat gradients", p.software.buckets * p.parameters});
  }
  return parts;
}

void add_kept(const HeldProgram& p, std::int64_t layers, bool running, HeldParts& parts) {
  const bool groups = p.strategy.recompute.mode == RecomputeMode::every_k;
  const std::int64_t group = layers - (groups ? layers % p.strategy.recompute.every : 0);
  std::int64_t whole = 0, once = 0, again = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool is_again = p.is_again(layer);
    if (!is_again || (running && layer >= group)) ++whole;
    if (is_again) again += kept_again(p, layer);
    if (!is_again) ++once;
  }
  const std::int64_t t = p.tokens;
  const auto add = [&](const char* what, std::int64_t bytes) {
    parts.push_back({MemoryTag::activation, what, bytes});
  };
  add("norms of blocks", whole * t * p.block.norms);
  add("inputs of products", whole * t * p.block.inputs);
  add("attention", whole * t * p.block.attention);
  add("activation of the MLP", whole * t * p.block.mlp);
  add("kept of recomputed blocks", again * t);
  if (p.element.casts) {
    add("16-bit copies of weights", p.element.compute * p.block_matrices() * once);
  }
  // Of rotary positions a complex table, of learned ones their numbers.
  const bool rotary = p.model.position == PositionKind::rope;
  add("positions", p.sequence * (rotary ? kFloatBytes * p.model.rotary_width() : kTokenBytes));
}

void add_gathered(const HeldProgram& p, std::int64_t blocks, HeldParts& parts) {
  if (!p.gathers()) return;
  const bool stay = p.strategy.zero.stage < 3 && p.ranks > 1;
  const std::int64_t gathered =
      p.root_parameters + p.block_parameters * (stay ? p.model.layers : blocks);
  parts.push_back({MemoryTag::communication, "gathered weights", p.element.compute * gathered});
}

}  // namespace zl::sim
