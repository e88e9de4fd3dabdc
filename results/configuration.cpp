#include "results/configuration.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

using Leaves = std::map<std::string, std::string>;  // by dotted path

void add_leaves_of(const Json& value, const std::string& path, Leaves& leaves) {
  if (!value.is_structured() || value.empty()) {
    leaves[path] = value.is_string() ? value.get<std::string>() : to_text(value);
    return;
  }
  for (const auto& item : value.items()) {
    add_leaves_of(item.value(), path.empty() ? item.key() : path + "." + item.key(), leaves);
  }
}

Leaves leaves_of(std::string_view text) {
  Json json = parse_json(text, "the stored scenario");
  if (!json.is_object()) throw Error(ErrorCode::invalid, "the stored scenario is no object");
  json.erase("name");
  const auto strategies = json.find("strategies");
  if (strategies != json.end() && strategies->is_array() && strategies->size() == 1) {
    Json strategy = strategies->front();
    if (strategy.is_object() && strategy.contains("x-zerolab") &&
        strategy["x-zerolab"].is_object()) {
      strategy["x-zerolab"].erase("name");
    }
    json.erase("strategies");
    json["strategy"] = std::move(strategy);
  }
  Leaves leaves;
  add_leaves_of(json, "", leaves);
  return leaves;
}

std::string value_at(const Leaves& leaves, const std::string& key) {
  const auto found = leaves.find(key);
  return found == leaves.end() ? "-" : found->second;
}

}  // namespace

std::vector<ConfigurationDifference> configuration_differences(std::string_view a,
                                                               std::string_view b) {
  const Leaves left = leaves_of(a), right = leaves_of(b);
  std::set<std::string> keys;
  for (const Leaves* leaves : {&left, &right}) {
    for (const auto& [key, value] : *leaves) keys.insert(key);
  }
  const bool other_model = value_at(left, "model.name") != value_at(right, "model.name");
  std::vector<ConfigurationDifference> differences;
  for (const std::string& key : keys) {
    if (other_model && key.starts_with("model.") && key != "model.name") continue;
    const std::string of_a = value_at(left, key), of_b = value_at(right, key);
    if (of_a != of_b) differences.push_back({key, of_a, of_b});
  }
  return differences;
}

}  // namespace zl
