#include "scenarios/files/gguf_config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace zl {
namespace {

struct GgufFamily {
  const char* architecture;
  const char* model_class;
  const char* activation;
};

constexpr std::array<GgufFamily, 6> kFamilies{{{"llama", "LlamaForCausalLM", "silu"},
                                               {"mistral", "MistralForCausalLM", "silu"},
                                               {"qwen2", "Qwen2ForCausalLM", "silu"},
                                               {"qwen3", "Qwen3ForCausalLM", "silu"},
                                               {"gemma", "GemmaForCausalLM", "gelu_pytorch_tanh"},
                                               {"phi3", "Phi3ForCausalLM", "silu"}}};

const GgufFamily& gguf_family(const GgufFile& file, std::string_view architecture) {
  std::string known;
  for (const GgufFamily& family : kFamilies) {
    if (architecture == family.architecture) return family;
    known += std::string(known.empty() ? "" : ", ") + family.architecture;
  }
  file.refuse("general.architecture is \"" + std::string(architecture) + "\"; " + known +
              " can be imported");
}

Json token_id(const GgufFile& file, const char* role) {
  const auto id = file.integer(std::string("tokenizer.ggml.") + role + "_token_id");
  return id ? Json(*id) : Json(nullptr);
}

bool has_tensor(const GgufFile& file, const char* name) { return file.find(name) != nullptr; }

// Biases and windows by family.
void add_switches(const GgufFile& file, const std::string& prefix, Json& config) {
  const std::string family = config["model_type"];
  const auto window = file.integer(prefix + "attention.sliding_window");
  if (family == "llama" || family == "qwen3" || family == "gemma") {
    config["attention_bias"] = has_tensor(file, "blk.0.attn_q.bias");
  }
  if (family == "llama") config["mlp_bias"] = has_tensor(file, "blk.0.ffn_up.bias");
  if (family == "mistral" || family == "phi3") {
    config["sliding_window"] = window && *window > 0 ? Json(*window) : Json(nullptr);
  }
  if (family == "qwen2" || family == "qwen3") {
    config["use_sliding_window"] = false;
    config["sliding_window"] = nullptr;
  }
  if (family == "gemma") config["hidden_activation"] = config["hidden_act"];
}

void add_rope(const Json& rope, Json& config) {
  config["rope_theta"] = rope["rope_theta"];
  Json scaling = rope;
  scaling.erase("rope_theta");
  scaling.erase("partial_rotary_factor");
  if (rope.contains("partial_rotary_factor")) {
    config["partial_rotary_factor"] = rope["partial_rotary_factor"];
  }
  // Phi-3 keeps the length at the top.
  if (rope["rope_type"] == "longrope") {
    config["original_max_position_embeddings"] = rope["original_max_position_embeddings"];
  }
  const bool scaled = rope["rope_type"] != "default";
  if (scaled) scaling["type"] = scaling["rope_type"];
  config["rope_scaling"] = scaled ? scaling : Json(nullptr);
  config["rope_parameters"] = rope;
}

}  // namespace

std::int64_t gguf_count(const GgufFile& file, const std::string& key) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  const auto value = file.integer(key);
  if (!value) file.refuse("no key \"" + key + "\"; it is needed to know the model");
  if (*value < 1 || *value > kMost) {
    file.refuse(key + " is " + std::to_string(*value) + ", not 1 to 4294967296");
  }
  return *value;
}

Json gguf_config(const GgufFile& file) {
  const std::string architecture = file.text("general.architecture").value_or("");
  const std::string prefix = architecture + ".";
  const bool windowed = file.integer(prefix + "attention.sliding_window").value_or(0) > 0;
  const GgufFamily& family =
      gguf_family(file, architecture == "llama" && windowed ? "mistral" : architecture);
  const GgufTensor* table = file.find("token_embd.weight");
  if (table == nullptr || table->shape.size() != 2) {
    file.refuse("no matrix \"token_embd.weight\"; a file with the whole model is needed");
  }
  const auto count = [&](const char* key) { return gguf_count(file, prefix + key); };
  const auto epsilon = file.number(prefix + "attention.layer_norm_rms_epsilon");
  if (!epsilon) file.refuse("no key \"" + prefix + "attention.layer_norm_rms_epsilon\"");
  const std::int64_t hidden = count("embedding_length"), heads = count("attention.head_count");
  const std::int64_t head = file.integer(prefix + "attention.key_length").value_or(hidden / heads);
  const bool tied = !has_tensor(file, "output.weight");
  Json config = {
      {"architectures", {family.model_class}},
      {"model_type", family.architecture},
      {"vocab_size", table->shape[0]},
      {"hidden_size", hidden},
      {"intermediate_size", count("feed_forward_length")},
      {"num_hidden_layers", count("block_count")},
      {"num_attention_heads", heads},
      {"num_key_value_heads", file.integer(prefix + "attention.head_count_kv").value_or(heads)},
      {"head_dim", head},
      {"max_position_embeddings", count("context_length")},
      {"rms_norm_eps", shortest_decimal(*epsilon)},
      {"hidden_act", family.activation},
      {"tie_word_embeddings", tied},
      {"attention_dropout", 0.0},
      {"initializer_range", 0.02},
      {"bos_token_id", token_id(file, "bos")},
      {"eos_token_id", token_id(file, "eos")},
      {"pad_token_id", token_id(file, "padding")}};
  add_switches(file, prefix, config);
  add_rope(gguf_rope(file, architecture, head), config);
  return config;
}

}  // namespace zl
