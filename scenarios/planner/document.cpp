#include "scenarios/planner/document.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/load_scenario.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

Json pointer_target(const Json& document, const std::string& path) {
  const Json* value = &document;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (!value->is_object() || !value->contains(key)) return nullptr;
    value = &(*value)[key];
    begin = end + 1;
  }
  return *value;
}

Json typed(const std::string& text) {
  const Json parsed = json_or_null(text);
  const bool keeps =
      parsed.is_number_integer() || parsed.is_object() || parsed.is_array() || parsed.is_boolean();
  return keeps ? parsed : Json(text);
}

std::string as_typed(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

void collect(const Json& a, const Json& b, const std::string& path, std::vector<std::string>& out) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    out.push_back(path);
    return;
  }
  Json keys = a;
  keys.update(b);
  for (const auto& item : keys.items()) {
    const std::string& key = item.key();
    collect(a.value(key, Json()), b.value(key, Json()), child_path(path, key), out);
  }
}

}  // namespace

Document Document::parse(std::string_view json, std::string source) {
  const Json parsed = parse_json(json, source);
  if (!parsed.is_object() || !parsed.contains("model")) {
    throw Error(ErrorCode::invalid,
                source + ": no scenario: it has no \"model\"; see `zerolab show scenario`");
  }
  Document document;
  document.text_ = to_text(parsed, 2);
  document.source_ = std::move(source);
  return document;
}

Document Document::open(const std::string& name_or_path) {
  if (catalog_has("studies", name_or_path)) {
    return parse(catalog_text("studies", name_or_path), name_or_path);
  }
  if (catalog_has("models", name_or_path)) {
    const Json document = {{"schema", 1}, {"model", name_or_path}};
    return parse(to_text(document), name_or_path);
  }
  if (is_file(name_or_path)) {
    return parse(read_file(name_or_path), name_or_path);
  }
  load_scenario(name_or_path);  // says which names there are
  throw Error(ErrorCode::invalid, name_or_path + ": not a scenario");
}

std::string Document::get(const std::string& path) const {
  return as_typed(pointer_target(Json::parse(text_), path));
}

bool Document::is_inline(const std::string& path) const {
  return pointer_target(Json::parse(text_), path).is_structured();
}

Document Document::with(const std::string& path, const std::string& value) const {
  Json document = Json::parse(text_);
  Json* target = &document;
  std::size_t begin = 0, end;
  while ((end = path.find('.', begin)) != std::string::npos) {
    Json& child = (*target)[path.substr(begin, end - begin)];
    if (!child.is_object()) child = Json::object();
    target = &child;
    begin = end + 1;
  }
  const std::string key = path.substr(begin);
  if (value.empty()) {
    target->erase(key);
  } else {
    (*target)[key] = typed(value);
  }
  Document changed = *this;
  changed.text_ = to_text(document, 2);
  return changed;
}

std::vector<std::string> Document::strategies() const {
  const Json list = pointer_target(Json::parse(text_), "strategies");
  std::vector<std::string> names;
  if (!list.is_array()) return names;
  for (const Json& each : list) names.push_back(as_typed(each));
  return names;
}

Document Document::with_strategies(const std::vector<std::string>& strategies) const {
  Json list = Json::array();
  for (const std::string& each : strategies) list.push_back(typed(each));
  return with("strategies", to_text(list));
}

std::vector<std::string> Document::differences(const Document& a, const Document& b) {
  std::vector<std::string> paths;
  collect(Json::parse(a.text_), Json::parse(b.text_), "", paths);
  return paths;
}

}  // namespace zl
