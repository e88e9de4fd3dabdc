#include "simulator/held_block.h"

#include <algorithm>

#include "core/ops/kinds.h"

namespace zl::sim {
namespace {

bool is_norm_in_ops(const ModelConfig& model, const SoftwareMemory& software) {
  const bool in_ops = software.rms_norm == RmsNormKernels::ops && !software.compiled;
  return model.norm == NormKind::rms_norm && in_ops;
}

// A norm over `width` elements, without what it gives.
std::int64_t norm_bytes(const ModelConfig& model, const SoftwareMemory& software,
                        std::int64_t stream, std::int64_t width) {
  const bool is_layer_norm = model.norm == NormKind::layer_norm;
  if (is_layer_norm) return stream * width + 2 * kFloatBytes;  // mean and 1/deviation
  if (!is_norm_in_ops(model, software)) return stream * width + kFloatBytes;
  // The fp32 operand (the stream itself where that is fp32), and the product before the weight.
  return (kFloatBytes + stream) * width + kFloatBytes;
}

// Heads' elements of what attention takes and gives.
std::int64_t attention_bytes(const ModelConfig& model, const SoftwareMemory& software,
                             const ElementBytes& element) {
  const std::int64_t width = model.attention_width();
  const std::int64_t heads = software.repeats_heads ? model.heads : model.kv_heads;
  std::int64_t bytes = element.compute * (2 * width + 2 * heads * model.head_size);
  bytes += kFloatBytes * model.heads;  // the logarithm of each row's sum
  if (model.qk_norm) {
    const std::int64_t normed = (model.heads + model.kv_heads) * model.head_size;
    bytes += norm_bytes(model, software, element.compute, normed);
  }
  return bytes;
}

// Outputs of every so-manieth product that has no bias.
std::int64_t kept_products(const ModelConfig& model, const SoftwareMemory& software) {
  const std::int64_t kv = model.kv_heads * model.head_size;
  struct Product {
    bool has_bias;
    std::int64_t width;
  };
  const bool gated = is_gated(model.activation), bias = model.qkv_bias;
  // In their order; GPT-2 has one for query, keys and values.
  const bool is_packed = model.position == PositionKind::learned;
  std::int64_t width = 0, count = 0;
  const auto add = [&](Product product) {
    if (product.has_bias) return;
    if (count++ % software.kept_products == 0) width += product.width;
  };
  if (is_packed) {
    add({bias, model.qkv_width()});
  } else {
    add({bias, model.attention_width()});
    add({bias, kv});
    add({bias, kv});
  }
  add({model.out_bias, model.hidden});
  if (gated) add({model.mlp_bias, model.ffn});
  add({model.mlp_bias, model.ffn});
  add({model.mlp_bias, model.hidden});
  return width;
}

void add_backward(const ModelConfig& model, const SoftwareMemory& software,
                  const ElementBytes& element, BlockBytes& block) {
  const std::int64_t gradient = element.stream * model.hidden;
  const std::int64_t ffn = element.compute * model.ffn;
  if (element.casts && !is_gated(model.activation)) {
    // The last product's: the cast one of its output, that of its input.
    block.mlp_left = block.all();
    block.mlp_scratch = gradient + element.compute * model.hidden + ffn;
  } else {
    // The activation's, or both factors', beside that of what it gave, which is no longer kept.
    block.mlp_left = block.all() - ffn;
    block.mlp_scratch = gradient + (is_gated(model.activation) ? 3 : 2) * ffn;
  }
  const bool in_ops = is_norm_in_ops(model, software);
  // The first norm may keep the block's input itself.
  block.beside_again = in_ops && element.stream < kFloatBytes ? block.input : 0;
  block.norm_left = (in_ops ? kFloatBytes : element.stream) * model.hidden;
  // In ops: two factors' gradients, their sum and what is added, all in fp32.
  block.norm_scratch = in_ops ? gradient + 4 * kFloatBytes * model.hidden : 3 * gradient;
}

}  // namespace

ElementBytes element_bytes(DType compute, const SoftwareMemory& software) {
  if (compute == DType::f32) return {};
  if (software.autocast) return {2, kFloatBytes, true};
  return {2, 2, false};
}

BlockBytes block_bytes(const ModelConfig& model, const SoftwareMemory& software,
                       const ElementBytes& element) {
  BlockBytes block;
  const std::int64_t hidden = model.hidden;
  const bool gated = is_gated(model.activation);
  block.norms = 2 * norm_bytes(model, software, element.stream, hidden);
  if (software.compiled) {
    // The second norm's input is added up again, of the block's and what attention gave.
    block.norms -= (element.stream - element.compute) * hidden;
  }
  // Products that read the first norm and the second. One product of all of them makes one cast.
  const bool is_packed = model.position == PositionKind::learned;
  const std::int64_t readers = (is_packed ? 1 : 3) + (gated ? 2 : 1);
  block.inputs = element.compute * hidden * (element.casts && !software.compiled ? readers : 2);
  block.attention = attention_bytes(model, software, element);
  // Inputs and outputs of the activation; of a gate both factors and their product besides, of
  // which compiled code computes one again.
  const std::int64_t gate = software.compiled ? 3 : 4;
  block.mlp = (gated ? gate : 2) * element.compute * model.ffn;
  block.input = element.stream * hidden;
  block.selective =
      block.input + element.compute * model.attention_width() + kFloatBytes * model.heads;
  if (software.kept_products > 0) {
    block.selective += element.compute * kept_products(model, software);
  }
  add_backward(model, software, element, block);
  return block;
}

std::int64_t head_input_bytes(const ModelConfig& model, const SoftwareMemory& software,
                              const ElementBytes& element) {
  // Parts of the rows are kept as they are, before any cast.
  const std::int64_t input = software.loss_chunks > 1 ? element.stream : element.compute;
  return norm_bytes(model, software, element.stream, model.hidden) + input * model.hidden;
}

}  // namespace zl::sim
