#include "simulator/held_block.h"

#include <algorithm>

#include "core/ops/kinds.h"

namespace zl::sim {
namespace {

constexpr std::int64_t kMaskBytes = 1;  // of an element that dropout kept or not

std::int64_t share(std::int64_t bytes, std::int64_t ranks) { return (bytes + ranks - 1) / ranks; }

bool is_norm_in_ops(const BlockProgram& p) {
  const bool in_ops = p.software.rms_norm == Fusion::ops && !p.software.compiled;
  return p.model.norm == NormKind::rms_norm && in_ops;
}

// A norm over `width` elements, without what it gives.
std::int64_t norm_bytes(const BlockProgram& p, std::int64_t stream, std::int64_t width) {
  const bool is_layer_norm = p.model.norm == NormKind::layer_norm;
  if (is_layer_norm) return stream * width + 2 * kFloatBytes;  // mean and 1/deviation
  if (!is_norm_in_ops(p)) return stream * width + kFloatBytes;
  // The fp32 operand (the stream itself where that is fp32), and the product before the weight.
  return (kFloatBytes + stream) * width + kFloatBytes;
}

// The logarithm of each row's sum; or a row's probabilities and, under dropout, its mask and what
// it left of them.
std::int64_t score_bytes(const BlockProgram& p) {
  const ModelConfig& model = p.model;
  if (!p.software.keeps_scores) return p.cut(kFloatBytes * model.heads);
  const bool drops = model.attention_dropout > 0;
  const std::int64_t each = p.element.compute + (drops ? kMaskBytes + p.element.compute : 0);
  return p.cut(each * model.heads * p.sequence);
}

// Heads' elements of what attention takes and gives.
std::int64_t attention_bytes(const BlockProgram& p) {
  const ModelConfig& model = p.model;
  const std::int64_t heads = p.software.repeats_heads ? model.heads : model.kv_heads;
  std::int64_t bytes =
      p.element.compute * (2 * model.attention_width() + 2 * heads * model.head_size);
  if (model.qk_norm) {
    const std::int64_t normed = (model.heads + model.kv_heads) * model.head_size;
    bytes += norm_bytes(p, p.element.compute, normed);
  }
  return p.cut(bytes) + score_bytes(p);
}

// Bytes of what every so-manieth product that has no bias gave.
std::int64_t kept_products(const BlockProgram& p) {
  const ModelConfig& model = p.model;
  if (p.software.kept_products == 0) return 0;
  const std::int64_t kv = model.kv_heads * model.head_size;
  enum class Rows : std::uint8_t { stream, all };  // under sequence parallelism
  const bool gated = is_gated(model.activation), bias = model.qkv_bias;
  // In their order; GPT-2 has one for query, keys and values.
  const bool is_packed = model.position == PositionKind::learned;
  std::int64_t bytes = 0, count = 0;
  const auto add = [&](bool has_bias, std::int64_t width, Rows rows) {
    if (has_bias || count++ % p.software.kept_products != 0) return;
    const std::int64_t each = p.element.compute * width;
    bytes += rows == Rows::stream ? p.rows(each) : p.cut(each);
  };
  if (is_packed) {
    add(bias, model.qkv_width(), Rows::all);
  } else {
    add(bias, model.attention_width(), Rows::all);
    add(bias, kv, Rows::all);
    add(bias, kv, Rows::all);
  }
  add(model.out_bias, model.hidden, Rows::stream);
  if (gated) add(model.mlp_bias, model.ffn, Rows::all);
  add(model.mlp_bias, model.ffn, Rows::all);
  add(model.mlp_bias, model.hidden, Rows::stream);
  return bytes;
}

// All but the parts that the strategy computes again.
std::int64_t selective_bytes(const BlockProgram& p, const RecomputeConfig& recompute,
                             const BlockBytes& block) {
  const std::int64_t compute = p.element.compute;
  if (recompute.products) {
    const std::int64_t attention =
        kFloatBytes * p.model.heads + compute * p.model.attention_width();
    return block.input + p.cut(attention) + kept_products(p);
  }
  std::int64_t bytes = block.all();
  if (recompute.attention) bytes -= score_bytes(p);
  if (recompute.activation) bytes -= p.cut(compute * p.model.ffn);
  return bytes;
}

// Of the tanh approximation: x, half of it, the tanh, one more than that, and their product.
bool is_gelu_in_ops(const BlockProgram& p) {
  const bool in_ops = p.software.gelu == Fusion::ops && !p.software.compiled;
  return p.model.activation == ActivationKind::gelu_tanh && in_ops;
}

// Rows of the MLP's width that the activation keeps: its inputs and what it gave; of a gate both
// factors and their product besides, of which fused code computes one again.
std::int64_t activation_rows(const BlockProgram& p) {
  if (is_gelu_in_ops(p)) return 5;
  if (!is_gated(p.model.activation)) return 2;
  return p.software.compiled || p.software.fused_activation ? 3 : 4;
}

void add_mlp_backward(const BlockProgram& p, std::int64_t gradient, BlockBytes& block) {
  const bool gated = is_gated(p.model.activation);
  const std::int64_t ffn = p.cut(p.element.compute * p.model.ffn);
  if (p.element.casts && !gated) {
    // The last product's: the cast one of its output, that of its input.
    block.mlp_left = block.all();
    block.mlp_scratch = gradient + p.element.compute * p.model.hidden + ffn;
  } else {
    // The activation's, or both factors', beside that of what it gave, which is no longer kept.
    block.mlp_left = block.all() - ffn;
    block.mlp_scratch = gradient + (gated || is_gelu_in_ops(p) ? 3 : 2) * ffn;
  }
}

void add_backward(const BlockProgram& p, const RecomputeConfig& recompute, BlockBytes& block) {
  const std::int64_t gradient = p.rows(p.element.stream * p.model.hidden);
  add_mlp_backward(p, gradient, block);
  if (p.software.keeps_scores) {
    // Probabilities are made again when their backward comes; it takes two gradients of them.
    const bool again = recompute.mode == RecomputeMode::selective && recompute.attention;
    if (again) block.mlp_left -= score_bytes(p);
    block.attention_left = block.attention + (block.norms + block.inputs) / 2;
    block.attention_scratch =
        2 * gradient + p.cut(2 * p.element.compute * p.model.heads * p.sequence);
  }
  const bool in_ops = is_norm_in_ops(p);
  // The first norm may keep the block's input itself.
  block.beside_again = in_ops && p.element.stream < kFloatBytes ? block.input : 0;
  block.norm_left = p.rows((in_ops ? kFloatBytes : p.element.stream) * p.model.hidden);
  // In ops: two factors' gradients, their sum and what is added, all in fp32.
  block.norm_scratch = in_ops ? gradient + p.rows(4 * kFloatBytes * p.model.hidden) : 3 * gradient;
}

// Inputs of the four products, and the gradients of what they gave.
std::int64_t waiting_bytes(const BlockProgram& p) {
  const ModelConfig& model = p.model;
  const std::int64_t stream = p.rows(p.element.compute * 4 * model.hidden);
  const std::int64_t widths =
      model.attention_width() + model.ffn + model.qkv_width() + model.ffn_in_width();
  return stream + p.cut(p.element.compute * widths);
}

}  // namespace

ElementBytes element_bytes(DType compute, const SoftwareMemory& software) {
  if (compute == DType::f32) return {};
  if (software.autocast) return {2, kFloatBytes, true};
  return {2, 2, false};
}

std::int64_t BlockProgram::rows(std::int64_t bytes) const {
  return share(bytes, tensor.sequence_parallel ? tensor.ranks : 1);
}

std::int64_t BlockProgram::cut(std::int64_t bytes) const { return share(bytes, tensor.ranks); }

BlockBytes block_bytes(const BlockProgram& p, const RecomputeConfig& recompute) {
  BlockBytes block;
  const ElementBytes& element = p.element;
  const std::int64_t hidden = p.model.hidden;
  const bool gated = is_gated(p.model.activation);
  block.norms = 2 * norm_bytes(p, element.stream, hidden);
  if (p.software.compiled) {
    // The second norm's input is added up again, of the block's and what attention gave.
    block.norms -= (element.stream - element.compute) * hidden;
  }
  block.norms = p.rows(block.norms);
  // Products that read the first norm and the second. One product of all of them makes one cast.
  const bool is_packed = p.model.position == PositionKind::learned;
  const std::int64_t readers = (is_packed ? 1 : 3) + (gated ? 2 : 1);
  const bool each_casts = element.casts && !p.software.compiled;
  block.inputs = p.rows(element.compute * hidden * (each_casts ? readers : 2));
  block.attention = attention_bytes(p);
  block.mlp = p.cut(activation_rows(p) * element.compute * p.model.ffn);
  if (p.model.dropout > 0) block.masks = p.rows(2 * kMaskBytes * hidden);
  block.input = p.rows(element.stream * hidden);
  block.waiting = waiting_bytes(p);
  block.selective = selective_bytes(p, recompute, block);
  add_backward(p, recompute, block);
  return block;
}

std::int64_t head_input_bytes(const BlockProgram& p) {
  // Parts of the rows are kept as they are, before any cast.
  const std::int64_t input = p.software.loss_chunks > 1 ? p.element.stream : p.element.compute;
  return p.rows(norm_bytes(p, p.element.stream, p.model.hidden) + input * p.model.hidden);
}

}  // namespace zl::sim
