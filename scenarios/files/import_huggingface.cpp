#include "scenarios/files/import_huggingface.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/files/huggingface_keys.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

// As huggingface's names of gelu.
ActivationKind read_gelu(const HuggingFaceKeys& config, const char* key, const char* absent) {
  const std::string activation = config.text_or(key, absent);
  if (activation == "gelu") return ActivationKind::gelu_erf;
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    config.fail(
        key, "\"" + shortened(activation) + "\" is not one of gelu_new, gelu_pytorch_tanh, gelu");
  }
  return ActivationKind::gelu_tanh;
}

ModelConfig read_gpt2(const HuggingFaceKeys& config) {
  ModelConfig model;
  model.layers = config.size("n_layer", "num_hidden_layers");
  model.hidden = config.size("n_embd", "hidden_size");
  model.heads = config.size("n_head", "num_attention_heads");
  model.vocab = config.size("vocab_size");
  model.max_sequence = config.find("n_positions") ? config.size("n_positions")
                                                  : config.size_or("max_position_embeddings", 1024);
  model.ffn = config.size_or("n_inner", 0);
  model.activation = read_gelu(config, "activation_function", "gelu_new");
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

// Two where neither is given, as transformers' configurations have.
std::int64_t label_count(const HuggingFaceKeys& config) {
  const Json* names = config.find("id2label");
  if (names != nullptr && names->is_object()) return static_cast<std::int64_t>(names->size());
  return config.size_or("num_labels", 2);
}

ModelConfig read_encoder(const HuggingFaceKeys& config, std::string_view type, HeadKind head) {
  ModelConfig model;
  model.family = "bert";
  model.encoder = true;
  model.layers = config.size("num_hidden_layers");
  model.hidden = config.size("hidden_size");
  model.heads = config.size("num_attention_heads");
  model.ffn = config.size("intermediate_size");
  model.vocab = config.size("vocab_size");
  model.max_sequence = config.size_or("max_position_embeddings", 512);
  model.segments = config.size_or("type_vocab_size", 2);
  // RoBERTa counts positions from behind that of the padding.
  if (type == "roberta") model.first_position = config.size_or("pad_token_id", 1) + 1;
  model.drops_first_row = type == "roberta";
  model.activation = read_gelu(config, "hidden_act", "gelu");
  model.norm_epsilon = config.number_or("layer_norm_eps", 1e-12);
  model.dropout = config.number_or("hidden_dropout_prob", 0.1);
  model.attention_dropout = config.number_or("attention_probs_dropout_prob", 0.1);
  model.label_dropout = config.number_or("classifier_dropout", model.dropout);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.head = head;
  model.labels = label_count(config);
  config.require("position_embedding_type", "absolute", "positions are learned");
  config.require("is_decoder", false, "an encoder sees both ways");
  config.require("add_cross_attention", false, "there is no decoder to attend to");
  return model;
}

struct Architecture {
  std::string_view name, type;
  HeadKind head = HeadKind::next_token;
};
constexpr std::array kArchitectures = {
    Architecture{"GPT2LMHeadModel", "gpt2"},
    Architecture{"LlamaForCausalLM", "llama"},
    Architecture{"MistralForCausalLM", "mistral"},
    Architecture{"Qwen2ForCausalLM", "qwen2"},
    Architecture{"Qwen3ForCausalLM", "qwen3"},
    Architecture{"GemmaForCausalLM", "gemma"},
    Architecture{"Phi3ForCausalLM", "phi3"},
    Architecture{"BertForMaskedLM", "bert", HeadKind::masked_token},
    Architecture{"BertForPreTraining", "bert", HeadKind::masked_token},
    Architecture{"BertForSequenceClassification", "bert", HeadKind::label},
    Architecture{"BertModel", "bert", HeadKind::label},
    Architecture{"RobertaForMaskedLM", "roberta", HeadKind::masked_token},
    Architecture{"RobertaForSequenceClassification", "roberta", HeadKind::label},
    Architecture{"RobertaModel", "roberta", HeadKind::label}};

// " is not supported; supported are ..., the nearest is ...".
std::string not_supported(const std::string& given, std::string_view Architecture::*part) {
  std::vector<std::string> all, names;
  for (const Architecture& known : kArchitectures) {
    all.push_back(std::string(known.name) + " (" + std::string(known.type) + ")");
    names.emplace_back(known.*part);
  }
  return " is not supported; supported are " + join(all, ", ") + "; the nearest is \"" +
         nearest(given, names) + "\"";
}

// Both `architectures` and `model_type`, where given, must be supported.
const Architecture& architecture_of(const HuggingFaceKeys& config) {
  std::string type = config.text_or("model_type", "");
  if (const Json* list = config.find("architectures"); list && list->is_array() && !list->empty()) {
    const std::string name = text_at(list->front(), config.where("architectures"));
    const auto* named = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                     [&](const Architecture& known) { return known.name == name; });
    if (named == kArchitectures.end() || (!type.empty() && type != named->type)) {
      config.fail("architectures",
                  "\"" + shortened(name) + "\"" +
                      (type.empty() ? "" : " of model_type \"" + shortened(type) + "\"") +
                      not_supported(name, &Architecture::name));
    }
    return *named;
  }
  for (const Architecture& known : kArchitectures) {
    if (known.type == type) return known;
  }
  config.fail("model_type",
              "\"" + shortened(type) + "\"" + not_supported(type, &Architecture::type));
}

std::string model_name(const HuggingFaceKeys& config, std::string_view source) {
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
  const HuggingFaceKeys config(object, source_name);
  const Architecture& known = architecture_of(config);
  ModelConfig model = known.head != HeadKind::next_token
                          ? read_encoder(config, known.type, known.head)
                      : known.type == "gpt2" ? read_gpt2(config)
                                             : read_llama_kin(config, std::string(known.type));
  model.name = model_name(config, source_name);
  model.init_std = config.number_or("initializer_range", 0.02);
  model.complete();
  return model;
}

}  // namespace zl
