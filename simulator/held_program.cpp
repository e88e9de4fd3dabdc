#include "simulator/held_program.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel/tensor_shard.h"

namespace zl::sim {
namespace {

constexpr std::int64_t kTokenBytes = 8;  // ids and their targets are 64-bit

// Bytes for each token that the layer keeps, of which more is computed again.
std::int64_t kept_again(const HeldProgram& p, std::int64_t layer) {
  const RecomputeConfig& recompute = p.strategy.recompute;
  if (recompute.mode == RecomputeMode::selective) return p.block.selective;
  if (p.strategy.offload.activations) return 0;
  const bool first = recompute.mode != RecomputeMode::every_k || layer % recompute.every == 0;
  return first ? p.block.input : 0;
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool is_on_device(Tier tier) { return tier == Tier::device; }

struct ReusedWeights {
  std::int64_t root = 0, blocks = 0;  // parameters
};

// DeepSpeed releases a module's weights where it will not need them within max_reuse_distance
// parameters (between its forward and its backward those behind it are run twice), and gathers
// ahead until max_live_parameters are there: what it will need is not released again.
ReusedWeights reused_weights(const HeldProgram& p, std::int64_t needed, std::int64_t passed) {
  const ZeroConfig& zero = p.strategy.zero;
  const std::int64_t reach = zero.max_reuse_distance / 2;  // from the end of the model
  const std::int64_t head = p.has_head ? p.head_parameters() : 0;
  const bool all = p.parameters <= std::max(reach, zero.max_live_parameters);
  // A tied table is there from the loss on to the embedding's backward.
  const bool past_head = passed > 0 && !p.model.ties_head();
  const std::int64_t table = p.model.ties_head() || all ? p.root_parameters : head;
  const std::int64_t root = table - (past_head ? head : 0);
  const std::int64_t behind = p.block_parameters * passed;
  const std::int64_t blocks =
      std::max({reach - head - behind, zero.max_live_parameters - root, needed});
  return {root, std::min(blocks, p.block_parameters * p.rank_layers - behind)};
}

}  // namespace

int stage_of(const PipelineConfig& config, int rank, int chunk) {
  const PipelineShape shape{.ranks = static_cast<int>(config.ranks),
                            .chunks = static_cast<int>(config.virtual_stages)};
  return Pipeline{.kind = config.schedule, .shape = shape, .work = {}}.stage_of(rank, chunk);
}

bool HeldProgram::gathers() const {
  const bool sharded = ranks > 1 && strategy.zero.stage >= software.gathers_from;
  return !software.autocast && (element.compute < weight || sharded);
}

std::int64_t HeldProgram::head_parameters() const {
  return block_program.cut(model.vocab * model.hidden);
}

std::int64_t HeldProgram::logits() const {
  return block_program.cut(model.vocab) * shard_bytes(tokens, software.loss_chunks);
}

std::int64_t HeldProgram::largest_piece() const {
  const std::int64_t matrix = block_program.cut(model.hidden * model.ffn_in_width());
  const std::int64_t largest = std::max(has_head ? head_parameters() : 0, matrix);
  return std::min(shard_bytes(parameters, shards(1)), shard_bytes(largest, shards(3)));
}

std::int64_t HeldProgram::block_matrices() const {
  return block_program.cut(model.hidden * (model.qkv_width() + model.attention_width()) +
                           model.hidden * (model.ffn_in_width() + model.ffn));
}

bool HeldProgram::is_again(std::int64_t layer) const {
  if (strategy.recompute.mode == RecomputeMode::none) return false;
  return !recomputes_first_blocks(strategy.recompute.mode) ||
         layer < strategy.recompute.blocks_of(stage_index);
}

ModelConfig padded_model(const ModelConfig& model, const Strategy& strategy,
                         const SoftwareMemory& software) {
  ModelConfig padded = model;
  padded.vocab = round_up(model.vocab, software.vocab_multiple * strategy.tensor.ranks);
  return padded;
}

HeldProgram held_program(const ModelConfig& padded, const Strategy& strategy, int ranks,
                         std::int64_t sequence, const SoftwareMemory& software) {
  const DType compute = strategy.precision.compute_dtype;
  const ElementBytes element = element_bytes(compute, software);
  const BlockProgram block{padded, software, element, strategy.tensor, sequence};
  HeldProgram program{padded,  strategy, software,
                      element, block,    block_bytes(block, strategy.recompute)};
  program.tokens = strategy.micro_batch * sequence;
  program.ranks = mesh_of(strategy, ranks).shard;
  const bool is_16_bit = compute != DType::f32;
  program.weight = is_16_bit ? software.weight : kFloatBytes;
  program.gradient = is_16_bit ? software.gradient : kFloatBytes;
  program.master = is_16_bit ? software.master : 0;
  program.moments = is_16_bit ? software.moments : 2 * kFloatBytes;
  program.scratch = software.step_scratch;
  return program;
}

void set_rank(HeldProgram& p, int rank) {
  const PipelineConfig& config = p.strategy.pipeline;
  const std::vector<UnitRange> stages = split_units(p.model, config);
  ModelConfig one = p.model;  // blocks are alike
  one.layers = 1;
  one.sliding_layers.clear();
  const ParameterTable table(one, {.ranks = static_cast<int>(p.strategy.tensor.ranks)});
  std::array<std::int64_t, 3> units{};  // embedding, block, head
  for (const ParameterSpec& spec : table.specs) units[spec.unit] += spec.count();
  const bool copies = stages.size() > 1 || p.strategy.separate_tied_gradient;
  if (p.model.ties_head() && copies) units[2] += p.head_parameters();
  p.rank_layers = p.root_parameters = 0;
  for (int chunk = 0; chunk < config.virtual_stages; ++chunk) {
    const UnitRange& own = stages[stage_of(config, rank, chunk)];
    p.rank_layers += layers_of(p.model, own);
    if (own.begin == 0) p.root_parameters += units[0];
    if (own.end == p.model.layers + 2) p.root_parameters += units[2];
  }
  p.block_parameters = units[1];
  p.parameters = p.root_parameters + p.block_parameters * p.rank_layers;
}

void set_chunk(HeldProgram& p, int stage, const UnitRange& units) {
  p.stage_index = stage;
  p.layers = layers_of(p.model, units);
  p.has_embedding = units.begin == 0;
  p.has_head = units.end == p.model.layers + 2;
}

std::int64_t shard_bytes(std::int64_t bytes, std::int64_t shards) {
  return (bytes + shards - 1) / shards;
}

std::int64_t sum(const HeldParts& parts) {
  std::int64_t bytes = 0;
  for (const HeldPart& part : parts) bytes += part.bytes;
  return bytes;
}

void add_states(const HeldProgram& p, MemoryTag tag, const char* what, std::int64_t bytes,
                HeldParts& parts) {
  const double share =
      static_cast<double>(p.block_parameters * p.rank_layers) / static_cast<double>(p.parameters);
  const std::int64_t in_blocks = std::llround(share * static_cast<double>(bytes));
  parts.push_back({tag, what, in_blocks, "blocks"});
  parts.push_back({tag, what, bytes - in_blocks, "embedding, head"});
}

HeldParts state_parts(const HeldProgram& p) {
  const std::int64_t weights =
      is_on_device(p.strategy.offload.parameters) ? p.weight * p.parameters : 0;
  const std::int64_t states = is_on_device(p.strategy.offload.optimizer) ? p.parameters : 0;
  HeldParts parts;
  add_states(p, MemoryTag::parameter, "weights",
             shard_bytes(weights, p.gathers() ? p.shards(p.software.gathers_from) : 1), parts);
  add_states(p, MemoryTag::optimizer, "master weights", shard_bytes(p.master * states, p.shards(1)),
             parts);
  add_states(p, MemoryTag::optimizer, "moments", shard_bytes(p.moments * states, p.shards(1)),
             parts);
  parts.push_back({MemoryTag::staging, "tokens and targets", 2 * kTokenBytes * p.tokens});
  parts.push_back({MemoryTag::workspace, "workspaces of libraries", p.software.workspace});
  parts.push_back({MemoryTag::activation, "other micro-batches", p.others});
  if (p.ranks > 1 && p.shards(2) == 1) {
    parts.push_back(
        {MemoryTag::communication, "flat gradients", p.software.buckets * p.parameters});
  }
  if (p.keeps_buckets()) add_buckets(p, 0, parts);
  if (p.software.attention_mask) {
    parts.push_back({MemoryTag::staging, "attention mask", p.tokens * p.block_program.sequence});
  }
  if (p.software.dummy_gradients) {
    parts.push_back({MemoryTag::workspace, "dummy gradients of weights",
                     p.element.compute * p.block_matrices(), "blocks"});
  }
  if (p.strategy.tensor.sequence_parallel) {
    parts.push_back({MemoryTag::communication, "gathered rows",
                     p.element.compute * p.model.hidden * p.tokens, "blocks"});
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
  const auto add = [&](const char* what, std::int64_t bytes, const char* of = "blocks") {
    parts.push_back({MemoryTag::activation, what, bytes, of});
  };
  add("norms of blocks", whole * t * p.block.norms);
  add("inputs of products", whole * t * p.block.inputs);
  add("attention", whole * t * p.block.attention);
  add("activation of the MLP", whole * t * p.block.mlp);
  const bool drops = p.model.dropout > 0 && p.has_embedding;
  add("masks of dropout", whole * t * p.block.masks);
  add("masks of dropout", drops ? t * p.block_program.rows(p.model.hidden) : 0, "embedding");
  add("kept of recomputed blocks", again * t);
  if (p.element.casts) {
    add("16-bit copies of weights", p.element.compute * p.block_matrices() * once);
  }
  // Of rotary positions a complex table, of learned ones their numbers.
  const bool rotary = p.model.position == PositionKind::rope;
  add("positions",
      p.block_program.sequence * (rotary ? kFloatBytes * p.model.rotary_width() : kTokenBytes),
      rotary ? "blocks" : "embedding");
}

std::int64_t kept_bytes(const HeldProgram& p) {
  HeldParts parts;
  add_kept(p, p.layers, false, parts);
  if (!p.has_head) return sum(parts);
  const std::int64_t logits = p.software.loss_chunks == 1 ? p.software.logits_kept * p.logits() : 0;
  return sum(parts) + head_input_bytes(p.block_program) * p.tokens + logits;
}

void add_gathered(const HeldProgram& p, std::int64_t blocks, std::int64_t passed,
                  HeldParts& parts) {
  if (!p.gathers()) return;
  const auto add = [&](std::int64_t parameters, const char* of) {
    parts.push_back(
        {MemoryTag::communication, "gathered weights", p.element.compute * parameters, of});
  };
  if (p.software.reuses_gathered) {
    const ReusedWeights reused = reused_weights(p, (blocks - 1) * p.block_parameters, passed);
    add(reused.root, "embedding, head");
    add(reused.blocks, "blocks");
    return;
  }
  const bool stay = p.strategy.zero.stage < 3 && p.ranks > 1;
  const std::int64_t all = std::min(stay ? p.rank_layers : blocks, p.rank_layers);
  add(p.root_parameters, "embedding, head");
  add(p.block_parameters * all, "blocks");
}

void add_buckets(const HeldProgram& p, std::int64_t passed, HeldParts& parts) {
  const ZeroConfig& zero = p.strategy.zero;
  if (zero.stage == 0) return;
  const std::int64_t buckets = zero.stage < 3 && zero.overlap_comm ? 2 : 1;
  const std::int64_t copied = zero.stage == 2 ? std::min(passed, zero.reduce_bucket_size) : 0;
  parts.push_back({MemoryTag::communication, "bucket of gradients",
                   p.software.reduce_bucket * (buckets * zero.reduce_bucket_size + copied)});
}

void add_gradients(const HeldProgram& p, std::int64_t passed, HeldParts& parts, int cut_from) {
  const bool leave = !is_on_device(p.strategy.offload.optimizer) && p.strategy.zero.stage >= 2;
  const bool stay = p.software.gradient_shards && p.strategy.zero.stage == 3;
  const bool whole = p.accumulates() || p.software.flat_gradients || stay;
  const std::int64_t parameters = leave ? 0 : whole ? p.parameters : passed;
  const std::int64_t bytes = shard_bytes(p.gradient * parameters, p.shards(cut_from));
  if (parameters > p.block_parameters * p.rank_layers) {
    add_states(p, MemoryTag::gradient, "gradients", bytes, parts);
  } else {
    parts.push_back({MemoryTag::gradient, "gradients", bytes, "blocks"});
  }
}

}  // namespace zl::sim
