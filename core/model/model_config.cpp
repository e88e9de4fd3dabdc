#include "core/model/model_config.h"

#include "core/base/error.h"

namespace zl {
namespace {

[[noreturn]] void reject(const ModelConfig& model, const std::string& message) {
  throw Error(ErrorCode::invalid,
              "model." + message + (model.name.empty() ? "" : " (model " + model.name + ")"));
}

void require_positive(const ModelConfig& model, const char* key, std::int64_t value) {
  if (value <= 0) {
    reject(model, std::string(key) + ": " + std::to_string(value) + " is not a positive number");
  }
}

}  // namespace

void ModelConfig::complete() {
  require_positive(*this, "layers", layers);
  require_positive(*this, "hidden", hidden);
  require_positive(*this, "heads", heads);
  require_positive(*this, "vocab", vocab);
  require_positive(*this, "max_sequence", max_sequence);
  if (head_size == 0) {
    if (hidden % heads != 0) {
      reject(*this, "heads: " + std::to_string(heads) + " does not divide model.hidden " +
                        std::to_string(hidden) + "; choose a divisor, or give model.head_size");
    }
    head_size = hidden / heads;
  }
  if (kv_heads == 0) kv_heads = heads;
  if (ffn == 0) ffn = 4 * hidden;
  require_positive(*this, "head_size", head_size);
  require_positive(*this, "kv_heads", kv_heads);
  require_positive(*this, "ffn", ffn);
  if (heads % kv_heads != 0) {
    reject(*this, "kv_heads: " + std::to_string(kv_heads) + " does not divide model.heads " +
                      std::to_string(heads));
  }
  if (position == PositionKind::rope && head_size % 2 != 0) {
    reject(*this, "head_size: " + std::to_string(head_size) +
                      " is odd, but rotary positions turn pairs of elements");
  }
}

std::int64_t ModelConfig::parameters() const {
  const std::int64_t norm_size = (norm == NormKind::layer_norm ? 2 : 1) * hidden;
  const std::int64_t qkv = (hidden + (qkv_bias ? 1 : 0)) * qkv_width();
  const std::int64_t bias = linear_bias ? 1 : 0;
  const std::int64_t out = (attention_width() + bias) * hidden;
  const std::int64_t mlp = (hidden + bias) * ffn_in_width() + (ffn + bias) * hidden;
  const std::int64_t head = tied_embeddings ? 0 : vocab * hidden;
  return embedding_parameters() + layers * (2 * norm_size + qkv + out + mlp) + norm_size + head;
}

std::int64_t ModelConfig::embedding_parameters() const {
  return (vocab + (position == PositionKind::learned ? max_sequence : 0)) * hidden;
}

double ModelConfig::flops_per_token(std::int64_t sequence_length) const {
  return 6.0 * static_cast<double>(parameters()) + 12.0 * static_cast<double>(layers) *
                                                       static_cast<double>(hidden) *
                                                       static_cast<double>(sequence_length);
}

}  // namespace zl
