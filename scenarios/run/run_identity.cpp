#include "scenarios/run/run_identity.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

constexpr const char *kModel = "model", *kStrategy = "strategy";

void add(const std::string& root, const Json& object, Labels& labels) {
  const Json flat = object.flatten();
  for (const auto& [path, value] : flat.items()) {
    labels[root + path] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

// Where text reads as a number it was one: no name of ours does.
Json value_of(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

Json object_of(const Labels& labels, const std::string& root) {
  Json flat = Json::object();
  for (const auto& [name, text] : labels) {
    if (name.starts_with(root + "/")) flat[name.substr(root.size())] = value_of(text);
  }
  return flat.unflatten();
}

}  // namespace

Labels identity_of(const ModelConfig& model, const Strategy& strategy) {
  Labels labels;
  add(kModel, model_to_json(model), labels);
  add(kStrategy, strategy_to_json(strategy), labels);
  return labels;
}

Identified identified_by(const Labels& labels, int ranks, const std::string& path) {
  Identified told;
  told.model = model_from_json(object_of(labels, kModel), path);
  const std::string strategy = object_of(labels, kStrategy).dump();
  told.strategy = import_deepspeed(strategy, path, {.ranks = ranks, .model = &told.model}).strategy;
  for (const auto& [name, value] : identity_of(told.model, told.strategy)) {
    const auto found = labels.find(name);
    if (found != labels.end() && found->second == value) continue;
    throw Error(ErrorCode::invalid,
                path + ": its " + name + " is " +
                    (found == labels.end() ? "not there" : "\"" + found->second + "\"") +
                    ", which this program does not understand; go on with the one that wrote it");
  }
  return told;
}

}  // namespace zl
