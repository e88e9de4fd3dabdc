#include "scenarios/files/model_file.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/import_huggingface.h"
#include "scenarios/files/rope_scaling.h"

namespace zl {
namespace {

template <class Kind, std::size_t size>
using Names = std::array<std::pair<const char*, Kind>, size>;

constexpr Names<NormKind, 2> kNorms = {
    {{"layer_norm", NormKind::layer_norm}, {"rms_norm", NormKind::rms_norm}}};
constexpr Names<ActivationKind, 4> kActivations = {{{"gelu_tanh", ActivationKind::gelu_tanh},
                                                    {"gelu_erf", ActivationKind::gelu_erf},
                                                    {"swiglu", ActivationKind::swiglu},
                                                    {"geglu_tanh", ActivationKind::geglu_tanh}}};
constexpr Names<PositionKind, 2> kPositions = {
    {{"learned", PositionKind::learned}, {"rope", PositionKind::rope}}};
constexpr Names<HeadKind, 3> kHeads = {{{"next_token", HeadKind::next_token},
                                        {"masked_token", HeadKind::masked_token},
                                        {"label", HeadKind::label}}};

template <class Kind, std::size_t size>
Kind parse_kind(const Names<Kind, size>& names, const Json& value, const std::string& where) {
  const std::string text = text_at(value, where);
  std::string known;
  for (const auto& [name, kind] : names) {
    if (text == name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorCode::invalid, where + ": \"" + shortened(text) + "\" is not one of " + known);
}

template <class Kind, std::size_t size>
const char* kind_name(const Names<Kind, size>& names, Kind kind) {
  for (const auto& [name, value] : names) {
    if (value == kind) return name;
  }
  return "?";
}

// One list of the plain keys serves reading, writing and the check for unknown keys.
template <class Model, class Visitor>
void visit_numbers(Model& model, Visitor&& visit) {
  visit("layers", model.layers);
  visit("hidden", model.hidden);
  visit("heads", model.heads);
  visit("kv_heads", model.kv_heads);
  visit("head_size", model.head_size);
  visit("ffn", model.ffn);
  visit("vocab", model.vocab);
  visit("max_sequence", model.max_sequence);
  visit("tied_embeddings", model.tied_embeddings);
  visit("qkv_bias", model.qkv_bias);
  visit("norm_epsilon", model.norm_epsilon);
  visit("rope_theta", model.rope_theta);
  visit("dropout", model.dropout);
  visit("attention_dropout", model.attention_dropout);
  visit("init_std", model.init_std);
  visit("sliding_window", model.sliding_window);
}

// Switches that few models turn: written where they are.
template <class Visitor>
void visit_switches(Visitor&& visit) {
  visit("qk_norm", &ModelConfig::qk_norm);
  visit("norm_plus_one", &ModelConfig::norm_plus_one);
  visit("scaled_embedding", &ModelConfig::scaled_embedding);
  visit("fused_files", &ModelConfig::fused_files);
  visit("rotary_fraction", &ModelConfig::rotary_fraction);
  visit("segments", &ModelConfig::segments);
  visit("first_position", &ModelConfig::first_position);
  visit("labels", &ModelConfig::labels);
  visit("label_dropout", &ModelConfig::label_dropout);
  visit("drops_first_row", &ModelConfig::drops_first_row);
}

void apply_family(ModelConfig& model) {
  if (model.family == "gpt2") return;
  if (model.family == "bert") {
    model.encoder = true;
    model.head = HeadKind::masked_token;
    model.activation = ActivationKind::gelu_erf;
    model.max_sequence = 512;
    model.segments = 2;
    model.norm_epsilon = 1e-12;
    return;
  }
  if (model.family != "llama") {
    throw Error(ErrorCode::invalid, "model.family: \"" + shortened(model.family) +
                                        "\" is not one of gpt2, llama, bert");
  }
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.tied_embeddings = model.qkv_bias = model.out_bias = model.mlp_bias = false;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {"name",         "family",         "norm",     "activation",
                                   "position",     "linear_bias",    "out_bias", "mlp_bias",
                                   "rope_scaling", "sliding_layers", "head"};
  const ModelConfig model;
  visit_numbers(model, [&keys](const char* key, const auto&) { keys.emplace_back(key); });
  visit_switches([&keys](const char* key, auto) { keys.emplace_back(key); });
  return keys;
}

void read_value(const Json& value, const std::string& where, std::int64_t& out) {
  out = integer_at(value, where);
  if (out < 0) {
    throw Error(ErrorCode::invalid, where + ": " + std::to_string(out) + " is negative");
  }
}
void read_value(const Json& value, const std::string& where, bool& out) {
  out = boolean_at(value, where);
}
void read_value(const Json& value, const std::string& where, double& out) {
  out = number_at(value, where);
  if (!(out >= 0)) throw Error(ErrorCode::invalid, where + ": " + shown(value) + " is negative");
}

template <class Value>
void read_if_given(const Json& object, const char* key, Value& out) {
  if (object.contains(key)) read_value(object[key], child_path("model", key), out);
}

// "linear_bias" is both of the biases that are not of q, k and v.
void read_biases(const Json& object, ModelConfig& model) {
  if (object.contains("linear_bias")) {
    read_if_given(object, "linear_bias", model.out_bias);
    model.mlp_bias = model.out_bias;
  }
  read_if_given(object, "out_bias", model.out_bias);
  read_if_given(object, "mlp_bias", model.mlp_bias);
}

void write_biases(const ModelConfig& model, Json& object) {
  if (model.out_bias == model.mlp_bias) {
    object["linear_bias"] = model.out_bias;
    return;
  }
  object["out_bias"] = model.out_bias;
  object["mlp_bias"] = model.mlp_bias;
}

void read_sliding_layers(const Json& object, ModelConfig& model) {
  if (!object.contains("sliding_layers")) return;
  const Json& layers = object["sliding_layers"];
  if (!layers.is_array()) {
    throw Error(ErrorCode::invalid,
                "model.sliding_layers: " + shown(layers) + " is not a list of layers");
  }
  for (const Json& layer : layers) {
    read_value(layer, "model.sliding_layers", model.sliding_layers.emplace_back());
  }
}

}  // namespace

ModelConfig model_from_json(const Json& object, std::string_view source) {
  check_keys(object, "model", known_keys());
  ModelConfig model;
  model.name =
      object.contains("name") ? text_at(object["name"], "model.name") : std::string(source);
  if (object.contains("family")) model.family = text_at(object["family"], "model.family");
  apply_family(model);
  if (object.contains("norm")) model.norm = parse_kind(kNorms, object["norm"], "model.norm");
  if (object.contains("activation")) {
    model.activation = parse_kind(kActivations, object["activation"], "model.activation");
  }
  if (object.contains("position")) {
    model.position = parse_kind(kPositions, object["position"], "model.position");
  }
  if (object.contains("head")) model.head = parse_kind(kHeads, object["head"], "model.head");
  visit_numbers(model, [&](const char* key, auto& member) { read_if_given(object, key, member); });
  visit_switches([&](const char* key, auto member) { read_if_given(object, key, model.*member); });
  read_biases(object, model);
  read_sliding_layers(object, model);
  if (object.contains("rope_scaling")) {
    model.rope_scaling = rope_scaling_from_json(object["rope_scaling"], "model.rope_scaling");
  }
  for (const auto& [key, rate] : {std::pair{"dropout", model.dropout},
                                  std::pair{"attention_dropout", model.attention_dropout},
                                  std::pair{"label_dropout", model.label_dropout}}) {
    if (rate >= 1.0) {
      throw Error(ErrorCode::invalid, child_path("model", key) + ": " + shown(object[key]) +
                                          " is not a probability below 1");
    }
  }
  model.complete();
  return model;
}

std::string known_model_name(const std::string& name_or_path) {
  std::string name = catalog_canonical_name("models", name_or_path);
  if (catalog_has("models", name)) return name;
  std::error_code ignored;
  if (std::filesystem::is_directory(name_or_path, ignored)) {
    throw Error(ErrorCode::invalid, "model: the folder \"" + shortened(name_or_path) +
                                        "\" has no config.json, which says the model's sizes");
  }
  if (name_or_path.find('/') != std::string::npos) {
    throw Error(ErrorCode::invalid, "model: there is no file or folder \"" +
                                        shortened(name_or_path) +
                                        "\"; `zerolab show models` lists what is known by name");
  }
  return name;
}

ModelConfig load_model(const std::string& name_or_path) {
  const std::string path = model_path(name_or_path);
  if (!catalog_has("models", name_or_path) && is_file(path)) {
    const std::string text = read_file(path);
    require_no_pickle(text, path);
    if (const std::string kind = binary_kind(text); !kind.empty()) {
      throw Error(ErrorCode::invalid, path + ": this is " + kind +
                                          ", not a model, which is a JSON file of its sizes, such "
                                          "as the config.json beside the weights");
    }
    const Json object = parse_json(text, path);
    if (object.contains("architectures") || object.contains("model_type")) {
      return import_huggingface(text, path);
    }
    return model_from_json(object, std::filesystem::path(path).stem().string());
  }
  const std::string name = known_model_name(name_or_path);
  return model_from_json(parse_json(catalog_text("models", name), name), name);
}

Json model_to_json(const ModelConfig& model) {
  Json object;
  object["name"] = model.name;
  object["family"] = model.family;
  object["norm"] = kind_name(kNorms, model.norm);
  object["activation"] = kind_name(kActivations, model.activation);
  object["position"] = kind_name(kPositions, model.position);
  visit_numbers(model, [&](const char* key, const auto& member) {
    object[key] = member;
    if (key == std::string_view("qkv_bias")) write_biases(model, object);
  });
  const ModelConfig otherwise;
  visit_switches([&](const char* key, auto member) {
    if (model.*member != otherwise.*member) object[key] = model.*member;
  });
  if (model.encoder) object["head"] = kind_name(kHeads, model.head);
  if (!model.sliding_layers.empty()) object["sliding_layers"] = model.sliding_layers;
  if (model.rope_scaling.kind != RopeKind::none) {
    object["rope_scaling"] = rope_scaling_to_json(model.rope_scaling);
  }
  return object;
}

}  // namespace zl
