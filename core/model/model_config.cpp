#include "core/model/model_config.h"

#include "core/base/error.h"

namespace zl {
namespace {

[[noreturn]] void reject(const ModelConfig& model, const std::string& message) {
  throw Error(ErrorCode::invalid,
              "model." + message + (model.name.empty() ? "" : " (model " + model.name + ")"));
}

// The largest model of today has 1e5 of anything but tokens.
constexpr std::int64_t kMaxSize = 1'000'000'000;
constexpr double kMaxParameters = 1e15;

void require_size(const ModelConfig& model, const char* key, std::int64_t value) {
  if (value <= 0) {
    reject(model, std::string(key) + ": " + std::to_string(value) + " is not a positive number");
  }
  if (value > kMaxSize) {
    reject(model, std::string(key) + ": " + std::to_string(value) + " is above " +
                      std::to_string(kMaxSize));
  }
}

void require_scaling(const ModelConfig& model) {
  const RopeScaling& scaling = model.rope_scaling;
  if (!(scaling.factor >= 1)) reject(model, "rope_scaling.factor: is not at least 1");
  if (!(scaling.low_freq > 0)) reject(model, "rope_scaling.low_freq_factor: is not above 0");
  if (!(scaling.high_freq > scaling.low_freq)) {
    reject(model, "rope_scaling.high_freq_factor: is not above low_freq_factor");
  }
  if (!(scaling.original > 0)) {
    reject(model, "rope_scaling.original_max_position_embeddings: is not above 0");
  }
}

// In floating point, where nothing overflows; biases and norms are too small to matter.
void require_countable(const ModelConfig& model) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double attention =
      real(model.head_size) * (2 * real(model.heads) + 2 * real(model.kv_heads));
  const double block = real(model.hidden) * (attention + 3 * real(model.ffn));
  const double tables = real(model.hidden) * (2 * real(model.vocab) + real(model.max_sequence));
  if (real(model.layers) * block + tables <= kMaxParameters) return;
  reject(model, "layers, hidden, ffn, vocab: more than 1e15 parameters; make one smaller");
}

}  // namespace

void ModelConfig::complete() {
  require_size(*this, "layers", layers);
  require_size(*this, "hidden", hidden);
  require_size(*this, "heads", heads);
  require_size(*this, "vocab", vocab);
  require_size(*this, "max_sequence", max_sequence);
  if (head_size == 0) {
    if (hidden % heads != 0) {
      reject(*this, "heads: " + std::to_string(heads) + " does not divide model.hidden " +
                        std::to_string(hidden) + "; choose a divisor, or give model.head_size");
    }
    head_size = hidden / heads;
  }
  if (kv_heads == 0) kv_heads = heads;
  if (ffn == 0) ffn = 4 * hidden;
  require_size(*this, "head_size", head_size);
  require_size(*this, "kv_heads", kv_heads);
  require_size(*this, "ffn", ffn);
  if (heads % kv_heads != 0) {
    reject(*this, "kv_heads: " + std::to_string(kv_heads) + " does not divide model.heads " +
                      std::to_string(heads));
  }
  if (position == PositionKind::rope && head_size % 2 != 0) {
    reject(*this, "head_size: " + std::to_string(head_size) +
                      " is odd, but rotary positions turn pairs of elements");
  }
  require_scaling(*this);
  require_countable(*this);
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
  const std::int64_t looked_up = tied_embeddings ? 0 : vocab * hidden;
  return 6.0 * static_cast<double>(parameters() - looked_up) +
         12.0 * static_cast<double>(layers) * static_cast<double>(hidden) *
             static_cast<double>(sequence_length);
}

}  // namespace zl
