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
constexpr Names<ActivationKind, 3> kActivations = {{{"gelu_tanh", ActivationKind::gelu_tanh},
                                                    {"gelu_erf", ActivationKind::gelu_erf},
                                                    {"swiglu", ActivationKind::swiglu}}};
constexpr Names<PositionKind, 2> kPositions = {
    {{"learned", PositionKind::learned}, {"rope", PositionKind::rope}}};

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
  visit("linear_bias", model.linear_bias);
  visit("norm_epsilon", model.norm_epsilon);
  visit("rope_theta", model.rope_theta);
  visit("dropout", model.dropout);
  visit("attention_dropout", model.attention_dropout);
  visit("init_std", model.init_std);
  visit("sliding_window", model.sliding_window);
}

void apply_family(ModelConfig& model) {
  if (model.family == "gpt2") return;
  if (model.family != "llama") {
    throw Error(ErrorCode::invalid,
                "model.family: \"" + shortened(model.family) + "\" is not one of gpt2, llama");
  }
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.tied_embeddings = model.qkv_bias = model.linear_bias = false;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {"name",       "family",   "norm",
                                   "activation", "position", "rope_scaling"};
  const ModelConfig model;
  visit_numbers(model, [&keys](const char* key, const auto&) { keys.emplace_back(key); });
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
  visit_numbers(model, [&object](const char* key, auto& member) {
    if (object.contains(key)) read_value(object[key], child_path("model", key), member);
  });
  if (object.contains("rope_scaling")) {
    model.rope_scaling = rope_scaling_from_json(object["rope_scaling"], "model.rope_scaling");
  }
  for (const auto& [key, rate] : {std::pair{"dropout", model.dropout},
                                  std::pair{"attention_dropout", model.attention_dropout}}) {
    if (rate >= 1.0) {
      throw Error(ErrorCode::invalid, child_path("model", key) + ": " + shown(object[key]) +
                                          " is not a probability below 1");
    }
  }
  model.complete();
  return model;
}

ModelConfig load_model(const std::string& name_or_path) {
  const std::string path = model_path(name_or_path);
  if (!catalog_has("models", name_or_path) && is_file(path)) {
    const std::string text = read_file(path);
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
  const std::string name = catalog_canonical_name("models", name_or_path);
  return model_from_json(parse_json(catalog_text("models", name), name), name);
}

Json model_to_json(const ModelConfig& model) {
  Json object;
  object["name"] = model.name;
  object["family"] = model.family;
  object["norm"] = kind_name(kNorms, model.norm);
  object["activation"] = kind_name(kActivations, model.activation);
  object["position"] = kind_name(kPositions, model.position);
  visit_numbers(model, [&object](const char* key, const auto& member) { object[key] = member; });
  if (model.rope_scaling.factor != 1) {
    object["rope_scaling"] = rope_scaling_to_json(model.rope_scaling);
  }
  return object;
}

}  // namespace zl
