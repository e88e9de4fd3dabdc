#include "core/model/model_config.h"

#include <algorithm>

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
constexpr double kMostPositions = 1e15;

void require_size(const ModelConfig& model, const char* key, std::int64_t value) {
  if (value <= 0) {
    reject(model, std::string(key) + ": " + std::to_string(value) + " is not a positive number");
  }
  if (value > kMaxSize) {
    reject(model, std::string(key) + ": " + std::to_string(value) + " is above " +
                      std::to_string(kMaxSize));
  }
}

void require_factors(const ModelConfig& model, const char* key,
                     const std::vector<double>& factors) {
  const auto wanted = static_cast<std::size_t>(model.rotary_width() / 2);
  if (factors.size() != wanted) {
    reject(model, std::string("rope_scaling.") + key + ": has " + std::to_string(factors.size()) +
                      " numbers; give one for each of the " + std::to_string(wanted) +
                      " pairs that are turned");
  }
  for (const double factor : factors) {
    if (!(factor > 0)) {
      reject(model, std::string("rope_scaling.") + key + ": a factor is not above 0");
    }
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
  if (!(scaling.beta_slow > 0 && scaling.beta_fast > scaling.beta_slow)) {
    reject(model, "rope_scaling.beta_fast: is not above beta_slow, or that not above 0");
  }
  if (!(scaling.attention_factor >= 0)) {
    reject(model, "rope_scaling.attention_factor: is negative");
  }
  if (scaling.kind != RopeKind::longrope) return;
  if (!(scaling.original > 1)) {
    reject(model, "rope_scaling.original_max_position_embeddings: is not above 1");
  }
  require_factors(model, "short_factor", scaling.short_factors);
  require_factors(model, "long_factor", scaling.long_factors);
}

void require_rotary(const ModelConfig& model) {
  if (model.position != PositionKind::rope) return;
  if (!(model.rope_theta > 1)) reject(model, "rope_theta: is not above 1");
  if (!(model.rotary_fraction > 0 && model.rotary_fraction <= 1)) {
    reject(model, "rotary_fraction: is not above 0 and at most 1");
  }
  if (model.rotary_width() % 2 == 0 && model.rotary_width() > 0) return;
  const std::string turned = model.rotary_fraction == 1
                                 ? "head_size: " + std::to_string(model.head_size)
                                 : "rotary_fraction: " + std::to_string(model.rotary_width()) +
                                       " of " + std::to_string(model.head_size) + " elements";
  reject(model, turned + " is odd, but rotary positions turn pairs of elements");
}

void require_layers(const ModelConfig& model) {
  std::int64_t before = -1;
  for (const std::int64_t layer : model.sliding_layers) {
    if (layer <= before || layer >= model.layers) {
      reject(model, "sliding_layers: " + std::to_string(layer) + " is no layer of 0 to " +
                        std::to_string(model.layers - 1) + ", or not above the one before it");
    }
    before = layer;
  }
  if (model.sliding_window >= 0) return;
  reject(model, "sliding_window: " + std::to_string(model.sliding_window) + " is negative");
}

void require_encoder(const ModelConfig& model) {
  if (model.encoder == (model.head == HeadKind::next_token)) {
    reject(model, model.encoder
                      ? std::string("head: an encoder sees the token that follows; use ") +
                            "masked_token or label"
                      : "head: only an encoder (family bert) has heads of masked tokens "
                        "and labels");
  }
  if (!model.encoder) {
    if (model.segments > 0) reject(model, "segments: only an encoder has them");
    if (model.first_position != 0) reject(model, "first_position: only an encoder has one");
    return;
  }
  if (model.position != PositionKind::learned || model.norm != NormKind::layer_norm) {
    reject(model, "position, norm: an encoder's are learned and layer_norm");
  }
  if (model.sliding_window != 0) reject(model, "sliding_window: an encoder has none; use 0");
  if (model.first_position < 0 || model.first_position >= model.max_sequence) {
    reject(model, "first_position: " + std::to_string(model.first_position) +
                      " is no row of the table of " + std::to_string(model.max_sequence));
  }
  if (model.segments < 0) reject(model, "segments: is negative");
  if (model.head == HeadKind::label && model.labels < 2) {
    reject(model, "labels: " + std::to_string(model.labels) + " are no choice; give 2 or more");
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
  require_rotary(*this);
  require_scaling(*this);
  require_layers(*this);
  require_encoder(*this);
  require_countable(*this);
}

std::int64_t ModelConfig::parameters() const {
  const std::int64_t norm_size = (norm == NormKind::layer_norm ? 2 : 1) * hidden;
  const std::int64_t qkv = (hidden + (qkv_bias ? 1 : 0)) * qkv_width();
  const std::int64_t head_norms = qk_norm ? 2 * head_size : 0;
  const std::int64_t out = (attention_width() + (out_bias ? 1 : 0)) * hidden;
  const std::int64_t bias = mlp_bias ? 1 : 0;
  const std::int64_t mlp = (hidden + bias) * ffn_in_width() + (ffn + bias) * hidden;
  const std::int64_t block = 2 * norm_size + qkv + head_norms + out + mlp;
  return embedding_parameters() + layers * block + head_parameters();
}

std::int64_t ModelConfig::embedding_parameters() const {
  const std::int64_t rows =
      vocab + (position == PositionKind::learned ? max_sequence : 0) + segments;
  return (rows + (encoder ? 2 : 0)) * hidden;
}

std::int64_t ModelConfig::head_parameters() const {
  const std::int64_t dense = (hidden + 1) * hidden;
  if (head == HeadKind::label) return dense + (hidden + 1) * labels;
  const std::int64_t norm_size = (norm == NormKind::layer_norm ? 2 : 1) * hidden;
  const std::int64_t tokens = tied_embeddings ? 0 : vocab * hidden;
  return norm_size + tokens + (head == HeadKind::masked_token ? dense + vocab : 0);
}

std::int64_t ModelConfig::rotary_width() const {
  // As transformers: towards 0.
  return static_cast<std::int64_t>(static_cast<double>(head_size) * rotary_fraction);
}

// Files of linear and dynamic scaling state the positions before (transformers' documentation of
// rope_scaling), those of yarn either; of others max_position_embeddings is the stretched length.
std::int64_t ModelConfig::scaled_positions() const {
  if (position == PositionKind::learned) return positions();
  double scaled = 0;
  if (rope_scaling.kind == RopeKind::linear || rope_scaling.kind == RopeKind::dynamic) {
    scaled = rope_scaling.factor * static_cast<double>(max_sequence);
  } else if (rope_scaling.kind == RopeKind::yarn) {
    scaled = rope_scaling.factor * rope_scaling.original;
  }
  return std::max(max_sequence, static_cast<std::int64_t>(std::min(scaled, kMostPositions)));
}

std::int64_t ModelConfig::window_of(std::int64_t layer) const {
  const bool slides = sliding_layers.empty() ||
                      std::binary_search(sliding_layers.begin(), sliding_layers.end(), layer);
  return slides ? sliding_window : 0;
}

double ModelConfig::flops_per_token(std::int64_t sequence_length) const {
  const std::int64_t looked_up = ties_head() ? 0 : vocab * hidden;
  const bool slides = sliding_window > 0 && sliding_window < sequence_length;
  const std::int64_t listed = static_cast<std::int64_t>(sliding_layers.size());
  const std::int64_t sliding = !slides ? 0 : sliding_layers.empty() ? layers : listed;
  const double keys = static_cast<double>(layers - sliding) * static_cast<double>(sequence_length) +
                      static_cast<double>(sliding) * static_cast<double>(sliding_window);
  return 6.0 * static_cast<double>(parameters() - looked_up) +
         12.0 * static_cast<double>(attention_width()) * keys;
}

}  // namespace zl
