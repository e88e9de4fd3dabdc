#include "scenarios/files/import_huggingface.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/files/rope_scaling.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

// Typed look-ups in one config; errors name the file and the key.
class Config {
 public:
  Config(const Json& object, std::string_view source) : object_(object), source_(source) {}

  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string where(const char* key) const { return source_ + ": " + key; }
  std::int64_t size(const char* key) const {
    if (!find(key)) fail(key, "is missing; give the number");
    return integer_at(*find(key), where(key));
  }
  std::int64_t size_or(const char* key, std::int64_t fallback) const {
    return find(key) ? integer_at(*find(key), where(key)) : fallback;
  }
  double number_or(const char* key, double fallback) const {
    return find(key) ? number_at(*find(key), where(key)) : fallback;
  }
  bool flag_or(const char* key, bool fallback) const {
    return find(key) ? boolean_at(*find(key), where(key)) : fallback;
  }
  std::string text_or(const char* key, const char* fallback) const {
    return find(key) ? text_at(*find(key), where(key)) : fallback;
  }
  // A feature zerolab lacks: the key must be absent, null, or `harmless`.
  void require(const char* key, const Json& harmless, const char* why) const {
    if (find(key) && *find(key) != harmless) {
      fail(key, shown(*find(key)) + " is not supported: " + why);
    }
  }
  [[noreturn]] void fail(const char* key, const std::string& what) const {
    throw Error(ErrorCode::invalid, where(key) + ": " + what);
  }

 private:
  const Json& object_;
  std::string source_;
};

void check_rope(const Config& config, ModelConfig& model) {
  model.rope_theta = config.number_or("rope_theta", 10000.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = config.find(key);
    if (rope == nullptr) continue;
    if (!rope->is_object()) config.fail(key, shown(*rope) + " is not an object");
    const std::string where = config.where(key);
    if (rope->contains("rope_theta")) {
      model.rope_theta = number_at((*rope)["rope_theta"], where + ".rope_theta");
    }
    const Json type = rope->value("rope_type", rope->value("type", Json("default")));
    if (type == "llama3") {
      model.rope_scaling = rope_scaling_from_json(*rope, where);
    } else if (type == "default") {
      check_keys(*rope, where, {"rope_type", "type", "rope_theta"});
    } else {
      config.fail(key, shown(*rope) +
                           " is not supported: rotary positions are scaled as in Llama 3.1 "
                           "(\"llama3\") or not at all. Memory and time do not depend on it: to "
                           "predict them, remove the key from a copy");
    }
  }
  config.require("partial_rotary_factor", 1.0, "rotary positions turn whole heads");
}

void check_layer_types(const Config& config) {
  const Json* types = config.find("layer_types");
  if (types == nullptr) return;
  for (const Json& type : *types) {
    if (type != "full_attention") {
      config.fail("layer_types", shown(type) + " is not supported: all layers attend fully");
    }
  }
}

void check_experts(const Config& config) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    config.require(key, 0, "mixtures of experts do not exist here");
  }
  config.require("quantization_config", nullptr, "weights are trained, not quantized");
}

ModelConfig read_gpt2(const Config& config) {
  ModelConfig model;
  model.layers = config.size("n_layer");
  model.hidden = config.size("n_embd");
  model.heads = config.size("n_head");
  model.vocab = config.size("vocab_size");
  model.max_sequence =
      config.find("n_positions") ? config.size("n_positions") : config.size("n_ctx");
  model.ffn = config.size_or("n_inner", 0);
  const std::string activation = config.text_or("activation_function", "gelu_new");
  if (activation == "gelu") {
    model.activation = ActivationKind::gelu_erf;
  } else if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    config.fail("activation_function", "\"" + shortened(activation) +
                                           "\" is not one of gelu_new, gelu_pytorch_tanh, gelu");
  }
  model.dropout = config.number_or("resid_pdrop", 0.1);
  if (config.number_or("embd_pdrop", 0.1) != model.dropout) {
    config.fail("embd_pdrop", "differs from resid_pdrop; zerolab has one rate for both");
  }
  model.attention_dropout = config.number_or("attn_pdrop", 0.1);
  model.norm_epsilon = config.number_or("layer_norm_epsilon", 1e-5);
  config.require("scale_attn_weights", true, "attention scores are always scaled");
  config.require("scale_attn_by_inverse_layer_idx", false, "attention is scaled by head size only");
  config.require("add_cross_attention", false, "models are decoders without an encoder");
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  return model;
}

ModelConfig read_llama_like(const Config& config, const std::string& type) {
  ModelConfig model;
  model.family = "llama";
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.layers = config.size("num_hidden_layers");
  model.hidden = config.size("hidden_size");
  model.heads = config.size("num_attention_heads");
  model.kv_heads = type == "llama" ? config.size_or("num_key_value_heads", model.heads)
                                   : config.size("num_key_value_heads");
  model.head_size = config.size_or("head_dim", 0);
  model.ffn = config.size("intermediate_size");
  model.vocab = config.size("vocab_size");
  model.max_sequence = config.size("max_position_embeddings");
  model.norm_epsilon = config.number_or("rms_norm_eps", 1e-6);
  model.attention_dropout = config.number_or("attention_dropout", 0.0);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  const std::string activation = config.text_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    config.fail("hidden_act",
                "\"" + shortened(activation) + "\" is not supported; the gated MLP uses silu");
  }
  const bool attention_bias = config.flag_or("attention_bias", false);
  const bool mlp_bias = config.flag_or("mlp_bias", false);
  if (attention_bias != mlp_bias) {
    config.fail(attention_bias ? "attention_bias" : "mlp_bias",
                "true is supported only together with the other of attention_bias, mlp_bias");
  }
  model.linear_bias = mlp_bias;
  model.qkv_bias = attention_bias || type == "qwen2";
  check_rope(config, model);
  if (type == "mistral") model.sliding_window = config.size_or("sliding_window", 0);
  if (type == "qwen2") {
    config.require("use_sliding_window", false, "attention is full over the sequence");
  }
  check_layer_types(config);
  check_experts(config);
  return model;
}

struct Architecture {
  std::string_view name, type;
};
constexpr std::array kArchitectures = {
    Architecture{"GPT2LMHeadModel", "gpt2"}, Architecture{"LlamaForCausalLM", "llama"},
    Architecture{"MistralForCausalLM", "mistral"}, Architecture{"Qwen2ForCausalLM", "qwen2"}};

// The model type; both `architectures` and `model_type`, where given, must be supported.
std::string model_type(const Config& config) {
  constexpr auto supported =
      " is not supported; supported are GPT2LMHeadModel (gpt2), LlamaForCausalLM (llama), "
      "MistralForCausalLM (mistral), Qwen2ForCausalLM (qwen2)";
  std::string type = config.text_or("model_type", "");
  if (const Json* list = config.find("architectures"); list && list->is_array() && !list->empty()) {
    const std::string name = text_at(list->front(), config.where("architectures"));
    std::string_view named;
    for (const Architecture& known : kArchitectures) {
      if (known.name == name) named = known.type;
    }
    if (named.empty() || (!type.empty() && type != named)) {
      config.fail("architectures",
                  "\"" + shortened(name) + "\"" +
                      (type.empty() ? "" : " of model_type \"" + shortened(type) + "\"") +
                      supported);
    }
    return std::string(named);
  }
  for (const Architecture& known : kArchitectures) {
    if (known.type == type) return type;
  }
  config.fail("model_type", "\"" + shortened(type) + "\"" + supported);
}

std::string model_name(const Config& config, std::string_view source) {
  const std::string path = config.text_or("_name_or_path", "");
  if (!path.empty()) return std::filesystem::path(path).filename().string();
  // Every model's file is called config.json: its folder is its name.
  const std::filesystem::path file(source);
  const std::string folder =
      std::filesystem::absolute(file).lexically_normal().parent_path().filename().string();
  return file.filename() == "config.json" && !folder.empty() ? folder : file.stem().string();
}

}  // namespace

ModelConfig import_huggingface(std::string_view json_text, std::string_view source_name) {
  const Json object = parse_json(json_text, source_name);
  if (!object.is_object()) {
    throw Error(ErrorCode::invalid, std::string(source_name) + ": not a JSON object");
  }
  const Config config(object, source_name);
  const std::string type = model_type(config);
  ModelConfig model = type == "gpt2" ? read_gpt2(config) : read_llama_like(config, type);
  model.name = model_name(config, source_name);
  model.init_std = config.number_or("initializer_range", 0.02);
  model.complete();
  return model;
}

}  // namespace zl
