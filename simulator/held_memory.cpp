#include "simulator/held_memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "simulator/held_program.h"

namespace zl::sim {
namespace {

// Gradients from the steps before, or of what the backward has passed.
void add_gradients(const HeldProgram& p, std::int64_t passed, HeldParts& parts) {
  const std::int64_t parameters = p.accumulates() ? p.parameters : passed;
  parts.push_back(
      {MemoryTag::gradient, "gradients", shard_bytes(p.gradient * parameters, p.shards(2))});
}

// All that the forward kept, when the loss or the head goes backward.
HeldParts before_backward(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  add_kept(p, p.model.layers, false, parts);
  const std::int64_t input = head_input_bytes(p.model, p.software, p.element);
  parts.push_back({MemoryTag::activation, "input of the head", input * p.tokens});
  if (p.element.casts) {
    parts.push_back({MemoryTag::activation, "16-bit copy of the head",
                     p.element.compute * p.head_parameters()});
  }
  add_gathered(p, 1, parts);
  add_gradients(p, 0, parts);
  return parts;
}

// Gradients of the rows that the head has passed, all but the last part of them.
std::int64_t rows_before(const HeldProgram& p) {
  const std::int64_t chunks = p.software.loss_chunks;
  if (chunks == 1) return p.element.compute * p.model.hidden * p.tokens;
  return p.element.stream * p.model.hidden * (p.tokens - shard_bytes(p.tokens, chunks));
}

HeldParts at_loss(const HeldProgram& p) {
  HeldParts parts = before_backward(p);
  const std::int64_t chunks = p.software.loss_chunks;
  const std::int64_t logits = p.model.vocab * shard_bytes(p.tokens, chunks);
  const std::int64_t made = p.software.logits_kept * logits;
  // What is computed again for a part of the rows is scratch.
  const MemoryTag tag = chunks > 1 ? MemoryTag::workspace : MemoryTag::activation;
  parts.push_back({tag, "softmax of logits", made});
  parts.push_back(
      {MemoryTag::workspace, "gradients of logits", p.software.logits_scratch * logits});
  if (chunks == 1) return parts;
  // Of the parts before: their weight gradients' sum, and the gradients of their rows.
  parts.push_back(
      {MemoryTag::workspace, "gradient of the head", p.element.compute * p.head_parameters()});
  parts.push_back({MemoryTag::workspace, "gradients of rows", rows_before(p)});
  return parts;
}

HeldParts at_head(const HeldProgram& p) {
  HeldParts parts = before_backward(p);
  const std::int64_t chunks = p.software.loss_chunks;
  const std::int64_t logits = p.model.vocab * shard_bytes(p.tokens, chunks);
  const std::int64_t head = p.element.compute * p.head_parameters();
  // Beside that of the logits; cast to the weights' type; or added to that of the parts before, not
  // in place. A copy of the weights is no longer there in the latter two.
  const std::int64_t cast = p.element.casts ? p.gradient * p.head_parameters() : 0;
  const std::int64_t summed = (p.element.casts ? 2 : 3) * head;
  const std::int64_t scratch =
      std::max({p.element.compute * logits + head, cast, chunks > 1 ? summed : 0});
  parts.push_back({MemoryTag::workspace, "gradients of logits and head", scratch});
  parts.push_back({MemoryTag::workspace, "gradients of rows", rows_before(p)});
  return parts;
}

// The head's gradient waits: for the embedding's where they share a table, or to be reduced.
void add_waiting_head(const HeldProgram& p, HeldParts& parts) {
  const bool waits = p.gathers() || p.model.ties_head();
  if (!waits && p.accumulates()) return;  // it is added to that of the steps before
  const std::int64_t bytes = p.gathers() ? p.element.compute : p.gradient;
  parts.push_back({waits ? MemoryTag::workspace : MemoryTag::gradient, "gradient of the head",
                   bytes * p.head_parameters()});
}

// Weights and gradients under way while a block goes backward: the next block's weights are
// gathered ahead, and the gradients of the one before are being reduced in fp32.
void add_under_way(const HeldProgram& p, std::int64_t layer, HeldParts& parts) {
  add_gathered(p, layer > 0 ? 2 : 1, parts);
  if (p.gathers() && layer + 1 < p.model.layers) {
    parts.push_back(
        {MemoryTag::communication, "gradients being reduced", kFloatBytes * p.block_parameters});
  }
}

// The MLP of a block goes backward: all that the block keeps is there (again).
HeldParts at_mlp(const HeldProgram& p, std::int64_t layer) {
  HeldParts parts = state_parts(p);
  add_kept(p, layer, true, parts);
  const bool again = p.is_again(layer);
  parts.push_back({MemoryTag::activation, "block that goes backward", p.block.mlp_left * p.tokens});
  if (again) {
    parts.push_back({MemoryTag::activation, "its input", p.block.beside_again * p.tokens});
  }
  if (p.element.casts) {
    parts.push_back({MemoryTag::activation, "16-bit copies of its weights",
                     p.element.compute * p.block_matrices()});
  }
  add_waiting_head(p, parts);
  const std::int64_t matrix = p.gathers() ? p.element.compute * p.model.hidden * p.model.ffn : 0;
  parts.push_back({MemoryTag::workspace, "gradients of weights", matrix});
  parts.push_back({MemoryTag::workspace, "scratch of the MLP", p.block.mlp_scratch * p.tokens});
  add_under_way(p, layer, parts);
  add_gradients(p, p.block_parameters * (p.model.layers - 1 - layer), parts);
  return parts;
}

// The first norm of a block goes backward: the gradients of its weights are there.
HeldParts at_norm(const HeldProgram& p, std::int64_t layer) {
  HeldParts parts = state_parts(p);
  add_kept(p, layer, true, parts);
  parts.push_back(
      {MemoryTag::activation, "block that goes backward", p.block.norm_left * p.tokens});
  add_waiting_head(p, parts);
  parts.push_back({MemoryTag::workspace, "scratch of the norm", p.block.norm_scratch * p.tokens});
  add_under_way(p, layer, parts);
  std::int64_t passed = p.model.layers - 1 - layer;
  if (p.gathers()) {
    parts.push_back(
        {MemoryTag::workspace, "gradients of weights", p.element.compute * p.block_parameters});
  } else {
    ++passed;
  }
  add_gradients(p, p.block_parameters * passed, parts);
  return parts;
}

// After the embedding: FSDP reduces what is in no block.
HeldParts at_root(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  const std::int64_t blocks = p.block_parameters * p.model.layers;
  if (p.gathers()) {
    parts.push_back(
        {MemoryTag::workspace, "gradients being reduced", kFloatBytes * p.root_parameters});
    parts.push_back({MemoryTag::communication, "gradients outside of blocks",
                     p.element.compute * p.root_parameters});
  } else {
    add_waiting_head(p, parts);
    parts.push_back(
        {MemoryTag::workspace, "gradient of the embedding", p.gradient * p.head_parameters()});
  }
  add_gradients(p, blocks, parts);
  return parts;
}

HeldParts at_step(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  add_gradients(p, p.parameters, parts);
  parts.push_back({MemoryTag::optimizer, "scratch of the optimizer",
                   shard_bytes(p.scratch * p.parameters, p.shards(1))});
  return parts;
}

std::int64_t sum(const HeldParts& parts) {
  std::int64_t bytes = 0;
  for (const HeldPart& part : parts) bytes += part.bytes;
  return bytes;
}

}  // namespace

TaggedBytes HeldMemory::peak() const {
  TaggedBytes bytes;
  for (const HeldPart& part : parts) bytes.tag[static_cast<std::size_t>(part.tag)] += part.bytes;
  return bytes;
}

std::string why_not_held(const ModelConfig& model, const Strategy& strategy,
                         const SoftwareMemory& software) {
  if (strategy.tensor.ranks * strategy.pipeline.ranks > 1) return "tensor or pipeline parallelism";
  if (strategy.offload.any()) return "offload";
  if (std::ranges::count(software.stages, strategy.zero.stage) == 0) {
    return "ZeRO stage " + std::to_string(strategy.zero.stage) + ", which that software has not";
  }
  if (strategy.zero.secondary_partition > 1) return "secondary shards";
  if (model.encoder || model.head != HeadKind::next_token) return "encoders";
  if (model.dropout > 0 || model.attention_dropout > 0) return "dropout";
  if (strategy.sparse_attention.mode != SparseMode::dense) return "block-sparse attention";
  const OptimizerKind kind = strategy.optimizer.kind;
  if (kind != OptimizerKind::adam && kind != OptimizerKind::adamw) return "other optimizers";
  return "";
}

HeldMemory held_memory(const ModelConfig& model, const Strategy& strategy, int ranks,
                       std::int64_t sequence, const SoftwareMemory& software) {
  if (const std::string why = why_not_held(model, strategy, software); !why.empty()) {
    throw Error(ErrorCode::invalid, "bytes under another software are not known of " + why);
  }
  const HeldProgram p = held_program(model, strategy, ranks, sequence, software);
  HeldMemory held;
  std::int64_t most = -1;
  const auto consider = [&](const std::string& when, HeldParts parts) {
    const std::int64_t bytes = sum(parts);
    if (bytes <= most) return;
    most = bytes;
    held.when = when;
    held.parts = std::move(parts);
  };
  consider("backward of the loss", at_loss(p));
  consider("backward of the head", at_head(p));
  for (std::int64_t layer = model.layers - 1; layer >= 0; --layer) {
    const std::string name = "layer " + std::to_string(layer + 1);
    consider("backward of the MLP of " + name, at_mlp(p, layer));
    consider("end of the backward of " + name, at_norm(p, layer));
  }
  consider("end of the backward", at_root(p));
  consider("step of the optimizer", at_step(p));
  std::erase_if(held.parts, [](const HeldPart& part) { return part.bytes == 0; });
  std::ranges::stable_sort(held.parts, std::greater{}, &HeldPart::bytes);
  // Gradients of the step before leave segments behind that nothing as large as logits fits into.
  const std::int64_t gradients = shard_bytes(p.gradient * p.parameters, p.shards(2));
  const std::int64_t alive = held.peak().tag[static_cast<std::size_t>(MemoryTag::gradient)];
  const std::int64_t used = most + std::max(gradients - alive, std::int64_t{0});
  held.reserved = std::llround(software.reserve * static_cast<double>(used));
  held.device = held.reserved + software.context + software.library;
  return held;
}

}  // namespace zl::sim
