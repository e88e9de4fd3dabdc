// The config.json of Llama and of the models that followed it.
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/text.h"
#include "scenarios/files/huggingface_keys.h"
#include "scenarios/files/rope_scaling.h"

namespace zl {
namespace {

// What an absent key means in transformers 5.23; 0 kv heads: as many as heads; 0 head_size: hidden
// / heads.
struct Kin {
  std::string_view type;
  std::int64_t kv_heads = 0, head_size = 0, positions = 0;
  double epsilon = 1e-6;
  bool tied = false;
};
constexpr std::array kKin = {Kin{"llama", 0, 0, 2048},
                             Kin{"mistral", 8, 0, 131072},
                             Kin{"qwen2", 32, 0, 32768},
                             Kin{"qwen3", 32, 128, 32768},
                             Kin{"gemma", 16, 256, 8192, 1e-6, true},
                             Kin{"phi3", 0, 0, 4096, 1e-5}};

const Kin& kin_of(const std::string& type) {
  for (const Kin& kin : kKin) {
    if (kin.type == type) return kin;
  }
  return kKin.front();
}

bool is_qwen(const std::string& type) { return type == "qwen2" || type == "qwen3"; }

void read_sizes(const HuggingFaceKeys& config, const Kin& kin, ModelConfig& model) {
  model.layers = config.size("num_hidden_layers");
  model.hidden = config.size("hidden_size");
  model.heads = config.size("num_attention_heads");
  model.kv_heads = config.size_or("num_key_value_heads", kin.kv_heads, 0);
  model.head_size = config.size_or("head_dim", kin.head_size, 0);
  model.ffn = config.size("intermediate_size");
  model.vocab = config.size("vocab_size");
  model.max_sequence = config.size_or("max_position_embeddings", kin.positions);
  model.norm_epsilon = config.number_or("rms_norm_eps", kin.epsilon);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", kin.tied);
}

void read_activation(const HuggingFaceKeys& config, ModelConfig& model) {
  const bool gemma = model.norm_plus_one;
  const char* key = gemma && config.find("hidden_activation") ? "hidden_activation" : "hidden_act";
  const std::string name = config.text_or(key, gemma ? "gelu_pytorch_tanh" : "silu");
  // Old files of Gemma say gelu and mean its approximation.
  const bool tanh = name == "gelu_pytorch_tanh" || name == "gelu_new" || (gemma && name == "gelu");
  if (!tanh && name != "silu" && name != "swish") {
    config.fail(key, "\"" + shortened(name) +
                         "\" is not supported; the gated MLP uses silu or gelu_pytorch_tanh");
  }
  model.activation = tanh ? ActivationKind::geglu_tanh : ActivationKind::swiglu;
}

void read_biases(const HuggingFaceKeys& config, const std::string& type, ModelConfig& model) {
  model.qkv_bias = model.out_bias = model.mlp_bias = false;
  if (type == "llama" || type == "qwen3" || type == "gemma") {
    model.qkv_bias = model.out_bias = config.flag_or("attention_bias", false);
  }
  if (type == "llama") model.mlp_bias = config.flag_or("mlp_bias", false);
  if (type == "qwen2") model.qkv_bias = true;
}

void read_dropout(const HuggingFaceKeys& config, const std::string& type, ModelConfig& model) {
  model.attention_dropout = config.number_or("attention_dropout", 0.0);
  if (type != "phi3") return;
  model.dropout = config.number_or("resid_pdrop", 0.0);
  if (config.number_or("embd_pdrop", 0.0) != model.dropout) {
    config.fail("embd_pdrop", "differs from resid_pdrop; zerolab has one rate for both");
  }
}

// Of Qwen: the layers from max_window_layers on.
std::vector<std::int64_t> later_layers(const HuggingFaceKeys& config, std::int64_t layers) {
  std::vector<std::int64_t> sliding;
  for (std::int64_t layer = config.size_or("max_window_layers", 28); layer < layers; ++layer) {
    sliding.push_back(layer);
  }
  return sliding;
}

std::vector<std::int64_t> listed_layers(const HuggingFaceKeys& config, const Json& types,
                                        std::int64_t layers) {
  std::vector<std::int64_t> sliding;
  if (!types.is_array() || static_cast<std::int64_t>(types.size()) != layers) {
    config.fail("layer_types", "does not name the kinds of " + std::to_string(layers) + " layers");
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const Json& type = types[static_cast<std::size_t>(layer)];
    if (type == "sliding_attention") {
      sliding.push_back(layer);
    } else if (type != "full_attention") {
      config.fail("layer_types", shown(type) +
                                     " is not supported; a layer's attention is "
                                     "full_attention or sliding_attention");
    }
  }
  return sliding;
}

void read_window(const HuggingFaceKeys& config, const std::string& type, ModelConfig& model) {
  const bool slides = type == "mistral" || type == "phi3" ||
                      (is_qwen(type) && config.flag_or("use_sliding_window", false));
  const std::int64_t usual = type == "phi3" ? 0 : 4096;
  if (slides) model.sliding_window = config.size_or("sliding_window", usual, 0);
  std::vector<std::int64_t> sliding;
  if (const Json* types = config.find("layer_types")) {
    sliding = listed_layers(config, *types, model.layers);
    if (!sliding.empty() && type != "mistral" && type != "phi3" && !is_qwen(type)) {
      config.fail("layer_types",
                  "sliding_attention is not supported: all layers of " + type + " attend fully");
    }
  } else if (is_qwen(type)) {
    sliding = later_layers(config, model.layers);
  } else {
    return;
  }
  if (sliding.empty()) model.sliding_window = 0;
  const bool everywhere = static_cast<std::int64_t>(sliding.size()) == model.layers;
  if (model.sliding_window > 0 && !everywhere) model.sliding_layers = std::move(sliding);
}

void check_experts(const HuggingFaceKeys& config) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    config.require(key, 0, "mixtures of experts do not exist here");
  }
  config.require("quantization_config", nullptr, "weights are trained, not quantized");
  config.require("use_bidirectional_attention", false, "decoders attend to what came before");
}

}  // namespace

void read_rope(const HuggingFaceKeys& config, const std::string& type, ModelConfig& model) {
  model.rope_theta = config.number_or("rope_theta", 10000.0);
  model.rotary_fraction = config.number_or("partial_rotary_factor", 1.0);
  const char* key = config.find("rope_scaling") ? "rope_scaling" : "rope_parameters";
  const Json* rope = config.find(key);
  if (rope == nullptr) return;
  if (!rope->is_object()) config.fail(key, shown(*rope) + " is not an object");
  const auto number = [&](const char* name, double& out) {
    const auto found = rope->find(name);
    if (found == rope->end() || found->is_null()) return;
    out = number_at(*found, config.where(key) + "." + name);
  };
  number("rope_theta", model.rope_theta);
  number("partial_rotary_factor", model.rotary_fraction);
  Json kind = rope->value("rope_type", rope->value("type", Json()));
  if (kind.is_null()) return;
  if (type == "phi3" && kind == "yarn") kind = "longrope";  // its old name there
  Json stretched = *rope;
  stretched["rope_type"] = kind;
  const char* length = "original_max_position_embeddings";
  const auto positions = static_cast<double>(model.max_sequence);
  double original = kind == "dynamic" ? positions : config.number_or(length, 0);
  if (original > 0) stretched[length] = original;
  RopeDefaults defaults;
  if (kind == "yarn") defaults.original = original = positions;
  number(length, original);
  if (kind == "yarn" || kind == "longrope" || kind == "su") defaults.factor = positions / original;
  model.rope_scaling = rope_scaling_from_json(stretched, config.where(key), defaults);
}

ModelConfig read_llama_kin(const HuggingFaceKeys& config, const std::string& type) {
  ModelConfig model;
  model.family = "llama";
  model.norm = NormKind::rms_norm;
  model.position = PositionKind::rope;
  model.qk_norm = type == "qwen3";
  model.fused_files = type == "phi3";
  model.norm_plus_one = model.scaled_embedding = type == "gemma";
  read_sizes(config, kin_of(type), model);
  read_activation(config, model);
  read_biases(config, type, model);
  read_dropout(config, type, model);
  read_rope(config, type, model);
  read_window(config, type, model);
  check_experts(config);
  return model;
}

}  // namespace zl
