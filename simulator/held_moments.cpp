#include "simulator/held_moments.h"

#include <algorithm>

#include "core/ops/kinds.h"

namespace zl::sim {
namespace {

// All that the forward kept, when the loss or the head goes backward.
HeldParts before_backward(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  add_kept(p, p.layers, false, parts);
  const std::int64_t input = head_input_bytes(p.block_program);
  parts.push_back({MemoryTag::activation, "input of the head", input * p.tokens, "head"});
  if (p.element.casts) {
    parts.push_back({MemoryTag::activation, "16-bit copy of the head",
                     p.element.compute * p.head_parameters(), "head"});
  }
  add_gathered(p, 1, 0, parts);
  add_gradients(p, 0, parts);
  return parts;
}

// The last block's MLP goes forward: of blocks that are computed again, too, the 16-bit copies stay
// until autocast ends.
HeldParts at_forward(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  add_kept(p, p.layers, false, parts);
  std::int64_t again = 0;
  for (std::int64_t layer = 0; layer < p.layers; ++layer) again += p.is_again(layer) ? 1 : 0;
  parts.push_back({MemoryTag::activation, "16-bit copies of recomputed blocks",
                   again * p.element.compute * p.block_matrices(), "blocks"});
  const std::int64_t width = is_gated(p.model.activation) ? 3 : 2;
  const std::int64_t stream = (2 * p.element.stream + p.element.compute) * p.model.hidden;
  parts.push_back({MemoryTag::activation, "forward of the MLP",
                   (stream + width * p.element.compute * p.model.ffn) * p.tokens, "blocks"});
  add_gradients(p, 0, parts);
  return parts;
}

// Gradients of the rows that the head has passed, all but the last part of them.
std::int64_t rows_before(const HeldProgram& p) {
  const std::int64_t chunks = p.software.loss_chunks;
  if (chunks == 1) return p.block_program.rows(p.element.compute * p.model.hidden) * p.tokens;
  return p.element.stream * p.model.hidden * (p.tokens - shard_bytes(p.tokens, chunks));
}

HeldParts at_loss(const HeldProgram& p) {
  HeldParts parts = before_backward(p);
  const std::int64_t chunks = p.software.loss_chunks;
  const std::int64_t made = p.software.logits_kept * p.logits();
  // What is computed again for a part of the rows is scratch.
  const MemoryTag tag = chunks > 1 ? MemoryTag::workspace : MemoryTag::activation;
  parts.push_back({tag, "softmax of logits", made, "head"});
  parts.push_back({MemoryTag::workspace, "gradients of logits",
                   p.software.logits_scratch * p.logits(), "head"});
  if (chunks == 1) return parts;
  // Of the parts before: their weight gradients' sum, and the gradients of their rows.
  parts.push_back({MemoryTag::workspace, "gradient of the head",
                   p.element.compute * p.head_parameters(), "head"});
  parts.push_back({MemoryTag::workspace, "gradients of rows", rows_before(p), "head"});
  return parts;
}

// The head's gradient beside that of the logits; cast to the weights' type; or added to that of the
// parts before, not in place. A copy of the weights is no longer there in the latter two.
std::int64_t head_scratch(const HeldProgram& p) {
  const std::int64_t head = p.element.compute * p.head_parameters();
  const std::int64_t cast = p.element.casts ? p.gradient * p.head_parameters() : 0;
  const std::int64_t summed = (p.element.casts ? 2 : 3) * head;
  return std::max(
      {p.element.compute * p.logits() + head, cast, p.software.loss_chunks > 1 ? summed : 0});
}

HeldParts at_head(const HeldProgram& p) {
  HeldParts parts = before_backward(p);
  parts.push_back({MemoryTag::workspace, "gradients of logits and head", head_scratch(p), "head"});
  parts.push_back({MemoryTag::workspace, "gradients of rows", rows_before(p), "head"});
  return parts;
}

// The head's gradient waits: for the embedding's where they share a table, or to be reduced.
void add_waiting_head(const HeldProgram& p, HeldParts& parts) {
  if (!p.has_head || p.software.flat_gradients) return;
  const bool waits = p.gathers() || p.model.ties_head();
  if (!waits && p.accumulates()) return;  // it is added to that of the steps before
  const std::int64_t bytes = p.gathers() ? p.element.compute : p.gradient;
  parts.push_back({waits ? MemoryTag::workspace : MemoryTag::gradient, "gradient of the head",
                   bytes * p.head_parameters(), "head"});
}

// Weights and gradients under way while a block goes backward: the next block's weights are
// gathered ahead, and the gradients of the one before are being reduced.
void add_under_way(const HeldProgram& p, std::int64_t layer, HeldParts& parts) {
  const std::int64_t passed = p.layers - 1 - layer;
  add_gathered(p, layer > 0 ? 2 : 1, passed, parts);
  if (!p.keeps_buckets()) add_buckets(p, passed * p.block_parameters, parts);
  if (p.gathers() && layer + 1 < p.layers) {
    parts.push_back({MemoryTag::communication, "gradients being reduced",
                     p.software.reduced * p.block_parameters, "blocks"});
  }
}

HeldParts before_block(const HeldProgram& p, std::int64_t layer) {
  HeldParts parts = state_parts(p);
  add_kept(p, layer, true, parts);
  add_waiting_head(p, parts);
  return parts;
}

// The MLP of a block goes backward: all that the block keeps is there (again).
HeldParts at_mlp(const HeldProgram& p, std::int64_t layer) {
  HeldParts parts = before_block(p, layer);
  parts.push_back(
      {MemoryTag::activation, "block that goes backward", p.block.mlp_left * p.tokens, "blocks"});
  if (p.is_again(layer)) {
    parts.push_back(
        {MemoryTag::activation, "its input", p.block.beside_again * p.tokens, "blocks"});
  }
  if (p.element.casts) {
    parts.push_back({MemoryTag::activation, "16-bit copies of its weights",
                     p.element.compute * p.block_matrices(), "blocks"});
  }
  const std::int64_t matrix = p.gathers() ? p.element.compute * p.model.hidden * p.model.ffn : 0;
  parts.push_back({MemoryTag::workspace, "gradients of weights", matrix, "blocks"});
  parts.push_back(
      {MemoryTag::workspace, "scratch of the MLP", p.block.mlp_scratch * p.tokens, "blocks"});
  add_under_way(p, layer, parts);
  add_gradients(p, p.block_parameters * (p.layers - 1 - layer), parts);
  return parts;
}

// What is left of a block that goes backward, and scratch, in bytes of a token.
HeldParts within_block(const HeldProgram& p, std::int64_t layer, std::int64_t left,
                       const char* of_what, std::int64_t scratch) {
  HeldParts parts = before_block(p, layer);
  parts.push_back({MemoryTag::activation, "block that goes backward", left * p.tokens, "blocks"});
  parts.push_back({MemoryTag::workspace, of_what, scratch * p.tokens, "blocks"});
  add_under_way(p, layer, parts);
  return parts;
}

HeldParts at_attention(const HeldProgram& p, std::int64_t layer) {
  HeldParts parts = within_block(p, layer, p.block.attention_left, "scratch of attention",
                                 p.block.attention_scratch);
  add_gradients(p, p.block_parameters * (p.layers - 1 - layer), parts);
  return parts;
}

// The first norm of a block goes backward: the gradients of its weights are there.
HeldParts at_norm(const HeldProgram& p, std::int64_t layer) {
  HeldParts parts =
      within_block(p, layer, p.block.norm_left, "scratch of the norm", p.block.norm_scratch);
  std::int64_t passed = p.layers - 1 - layer;
  if (p.gathers()) {
    // All of the block's, or those that are not in a bucket yet.
    const std::int64_t made =
        p.software.reduce_bucket > 0 ? p.model.hidden * p.model.qkv_width() : p.block_parameters;
    parts.push_back(
        {MemoryTag::workspace, "gradients of weights", p.element.compute * made, "blocks"});
  } else {
    ++passed;
  }
  add_gradients(p, p.block_parameters * passed, parts);
  return parts;
}

// After the embedding: FSDP reduces what is in no block.
HeldParts at_root(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  if (!p.keeps_buckets()) add_buckets(p, 0, parts);
  const std::int64_t blocks = p.block_parameters * p.rank_layers;
  if (p.gathers()) {
    parts.push_back({MemoryTag::workspace, "gradients being reduced",
                     p.software.reduced * p.root_parameters, "embedding, head"});
    parts.push_back({MemoryTag::communication, "gradients outside of blocks",
                     p.element.compute * p.root_parameters, "embedding, head"});
  } else if (!p.software.flat_gradients) {
    add_waiting_head(p, parts);
    // Of a tied table, and the sum of both.
    const std::int64_t copies = p.model.ties_head() ? 2 : 1;
    parts.push_back({MemoryTag::workspace, "gradient of the embedding",
                     copies * p.gradient * p.head_parameters(), "embedding"});
  }
  add_gradients(p, blocks, parts);
  return parts;
}

// Every gradient is in a bucket.
HeldParts at_last_bucket(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  if (!p.keeps_buckets()) add_buckets(p, p.parameters, parts);
  add_gradients(p, 0, parts);
  return parts;
}

// Parameters of the shard that the optimizer steps together: DeepSpeed's ZeRO-3 has groups of them.
std::int64_t stepped_at_once(const HeldProgram& p) {
  const std::int64_t shard = shard_bytes(p.parameters, p.shards(1));
  const bool in_groups = p.software.gradient_shards && p.strategy.zero.stage == 3;
  return in_groups ? std::min(shard, p.strategy.offload.sub_group_size) : shard;
}

HeldParts at_step(const HeldProgram& p) {
  HeldParts parts = state_parts(p);
  add_gradients(p, p.parameters, parts, p.software.gradient_shards ? 1 : 2);
  const bool here = p.strategy.offload.optimizer == Tier::device;
  const std::int64_t scratch =
      std::max(p.scratch * stepped_at_once(p), p.software.norm_scratch * p.largest_piece());
  add_states(p, MemoryTag::optimizer, "scratch of the optimizer", here ? scratch : 0, parts);
  return parts;
}

}  // namespace

void backward_moments(const HeldProgram& p, std::int64_t first_layer, const TakeMoment& take) {
  const bool recomputes = p.strategy.recompute.mode != RecomputeMode::none;
  if (p.element.casts && recomputes) take("forward of the last block", at_forward(p));
  if (p.has_head) {
    take("backward of the loss", at_loss(p));
    take("backward of the head", at_head(p));
  }
  for (std::int64_t layer = p.layers - 1; layer >= 0; --layer) {
    const std::string name = "layer " + std::to_string(first_layer + layer + 1);
    take("backward of the MLP of " + name, at_mlp(p, layer));
    if (p.block.attention_left > 0) {
      take("backward of the attention of " + name, at_attention(p, layer));
    }
    take("end of the backward of " + name, at_norm(p, layer));
  }
}

void step_moments(const HeldProgram& p, const TakeMoment& take) {
  if (p.has_embedding) take("end of the backward", at_root(p));
  if (p.software.reduce_bucket > 0) take("reduction of the last bucket", at_last_bucket(p));
  take("step of the optimizer", at_step(p));
}

}  // namespace zl::sim
