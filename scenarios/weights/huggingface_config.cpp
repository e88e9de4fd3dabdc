#include "scenarios/weights/huggingface_config.h"

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "scenarios/files/model_folder.h"
#include "scenarios/files/rope_scaling.h"
#include "scenarios/weights/label_names.h"
#include "scenarios/weights/tensor_names.h"

namespace zl {
namespace {

const char* torch_name(DType dtype) {
  if (dtype == DType::bf16) return "bfloat16";
  return dtype == DType::f16 ? "float16" : "float32";
}

// Releases before 5 know torch_dtype, later ones dtype.
void set_dtype(Json& config, DType dtype) {
  config["dtype"] = config["torch_dtype"] = torch_name(dtype);
}

const char* activation_name(const ModelConfig& model) {
  switch (model.activation) {
    case ActivationKind::gelu_tanh:
      return "gelu_new";
    case ActivationKind::gelu_erf:
      return "gelu";
    case ActivationKind::geglu_tanh:
      return "gelu_pytorch_tanh";
    default:
      return "silu";
  }
}

void add_gpt2(const ModelConfig& model, Json& config) {
  config["architectures"] = {"GPT2LMHeadModel"};
  config["n_layer"] = model.layers;
  config["n_embd"] = model.hidden;
  config["n_head"] = model.heads;
  config["n_inner"] = model.ffn;
  config["n_positions"] = model.max_sequence;
  config["activation_function"] = activation_name(model);
  config["layer_norm_epsilon"] = model.norm_epsilon;
  config["resid_pdrop"] = config["embd_pdrop"] = model.dropout;
  config["attn_pdrop"] = model.attention_dropout;
  config["scale_attn_weights"] = true;
  config["bos_token_id"] = config["eos_token_id"] = model.vocab - 1;
}

Json rope_json(const ModelConfig& model) {
  const RopeScaling& scaling = model.rope_scaling;
  Json rope = rope_scaling_to_json(scaling);
  if (scaling.kind == RopeKind::llama3) rope["rope_type"] = "llama3";
  const char* length = "original_max_position_embeddings";
  if (rope.contains(length)) rope[length] = static_cast<std::int64_t>(scaling.original);
  if (model.rotary_fraction != 1) rope["partial_rotary_factor"] = model.rotary_fraction;
  return rope;
}

void add_rope(const ModelConfig& model, Json& config) {
  Json rope = rope_json(model);
  const bool is_plain = model.rope_scaling.kind == RopeKind::none;
  config["rope_theta"] = model.rope_theta;
  config["rope_scaling"] = is_plain ? Json() : rope;
  if (model.rotary_fraction != 1) config["partial_rotary_factor"] = model.rotary_fraction;
  rope["rope_theta"] = model.rope_theta;
  config["rope_parameters"] = rope;
}

const char* architecture_of(std::string_view type) {
  if (type == "mistral") return "MistralForCausalLM";
  if (type == "qwen2") return "Qwen2ForCausalLM";
  if (type == "qwen3") return "Qwen3ForCausalLM";
  if (type == "gemma") return "GemmaForCausalLM";
  return type == "phi3" ? "Phi3ForCausalLM" : "LlamaForCausalLM";
}

const char* encoder_architecture(const ModelConfig& model, std::string_view type) {
  if (type == "roberta") {
    return model.head == HeadKind::label ? "RobertaForSequenceClassification"
                                         : "RobertaForMaskedLM";
  }
  return model.head == HeadKind::label ? "BertForSequenceClassification" : "BertForMaskedLM";
}

void add_head(const ModelConfig& model, std::string_view type,
              const std::vector<std::string>& labels, Json& config) {
  config["architectures"] = {encoder_architecture(model, type)};
  if (model.head != HeadKind::label) return;
  config["problem_type"] = "single_label_classification";
  config["classifier_dropout"] = model.label_dropout;
  set_label_names(model.labels, labels, config);
}

// What all but GPT-2 call by the same names.
void add_sizes(const ModelConfig& model, Json& config) {
  config["num_hidden_layers"] = model.layers;
  config["hidden_size"] = model.hidden;
  config["num_attention_heads"] = model.heads;
  config["intermediate_size"] = model.ffn;
  config["max_position_embeddings"] = model.max_sequence;
  config["hidden_act"] = activation_name(model);
}

void add_bert(const ModelConfig& model, Json& config) {
  add_sizes(model, config);
  config["type_vocab_size"] = model.segments;
  config["layer_norm_eps"] = model.norm_epsilon;
  config["hidden_dropout_prob"] = model.dropout;
  config["attention_probs_dropout_prob"] = model.attention_dropout;
  config["pad_token_id"] = model.first_position > 0 ? model.first_position - 1 : 0;
}

// Which layers slide, as Qwen says it.
void add_windows(const ModelConfig& model, Json& config) {
  config["use_sliding_window"] = model.sliding_window > 0;
  config["sliding_window"] = model.sliding_window > 0 ? Json(model.sliding_window) : Json();
  Json types = Json::array();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    types.push_back(model.window_of(layer) > 0 ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = types;
}

// Its releases of transformers 4 take a stretched rotation with these three keys alone. Tokens that
// the class has by itself are those of the original vocabulary.
void add_phi3(const ModelConfig& model, Json& config) {
  constexpr std::int64_t kPad = 32000;
  config["resid_pdrop"] = config["embd_pdrop"] = model.dropout;
  if (model.vocab <= kPad) config["pad_token_id"] = config["eos_token_id"] = Json();
  const RopeScaling& scaling = model.rope_scaling;
  if (scaling.kind != RopeKind::longrope) return;
  config["original_max_position_embeddings"] = static_cast<std::int64_t>(scaling.original);
  if (scaling.attention_factor > 0) return;
  config["rope_scaling"] = {{"type", "longrope"},
                            {"short_factor", scaling.short_factors},
                            {"long_factor", scaling.long_factors}};
}

void add_llama(const ModelConfig& model, std::string_view type, Json& config) {
  config["architectures"] = {architecture_of(type)};
  add_sizes(model, config);
  config["num_key_value_heads"] = model.kv_heads;
  config["head_dim"] = model.head_size;
  config["rms_norm_eps"] = model.norm_epsilon;
  config["attention_dropout"] = model.attention_dropout;
  if (type == "llama" || type == "qwen3" || type == "gemma") {
    config["attention_bias"] = model.qkv_bias;
  }
  if (type == "llama") config["mlp_bias"] = model.mlp_bias;
  if (type == "mistral" || type == "phi3") {
    config["sliding_window"] = model.sliding_window > 0 ? Json(model.sliding_window) : Json();
  }
  if (type == "qwen2" || type == "qwen3") add_windows(model, config);
  add_rope(model, config);
  if (type == "phi3") add_phi3(model, config);
}

}  // namespace

Json huggingface_config(const ModelConfig& model, std::string_view model_type, DType dtype,
                        const std::vector<std::string>& labels) {
  Json config;
  config["model_type"] = model_type;
  if (model_type == "gpt2") {
    add_gpt2(model, config);
  } else if (model.encoder) {
    add_bert(model, config);
    add_head(model, model_type, labels, config);
  } else {
    add_llama(model, model_type, config);
  }
  config["vocab_size"] = model.vocab;
  config["tie_word_embeddings"] = model.tied_embeddings;
  config["initializer_range"] = model.init_std;
  config["use_cache"] = true;
  set_dtype(config, dtype);
  return config;
}

Json source_config(const std::string& folder, const ModelConfig& model, DType dtype,
                   const std::vector<std::string>& labels) {
  const std::string path = path_in(folder, "config.json");
  Json config = parse_json(read_file(path), path);
  if (model.encoder) add_head(model, model_type_of(model), labels, config);
  set_dtype(config, dtype);
  return config;
}

}  // namespace zl
