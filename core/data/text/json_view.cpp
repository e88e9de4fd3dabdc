#include "core/data/text/json_view.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_limits.h"
#include "core/base/text.h"

namespace zl {

struct JsonView::Document {
  std::string file;
  nlohmann::json root;
};

namespace {

const nlohmann::json& json_at(const void* value) {
  static const nlohmann::json kNull;
  return value == nullptr ? kNull : *static_cast<const nlohmann::json*>(value);
}

}  // namespace

JsonView::JsonView(std::shared_ptr<const Document> document, const void* value, std::string path)
    : document_(std::move(document)), value_(value), path_(std::move(path)) {}

JsonView JsonView::of_file(const std::string& path) { return of_text(read_file(path), path); }

JsonView JsonView::of_text(std::string_view text, const std::string& name) {
  require_shallow_json(text, name);
  auto document = std::make_shared<Document>();
  document->file = name;
  try {
    document->root = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::invalid, name + ": not valid JSON: " + json_problem(error.what()));
  }
  const void* root = &document->root;
  return {std::move(document), root, ""};
}

std::string JsonView::place() const {
  return document_->file + (path_.empty() ? "" : ": " + shortened(path_));
}

void JsonView::refuse(const std::string& defect) const {
  throw Error(ErrorCode::invalid, place() + ": " + defect);
}

void JsonView::refuse_choice(std::initializer_list<const char*> known) const {
  std::string list;
  for (const char* name : known) list += std::string(list.empty() ? "" : ", ") + name;
  refuse("\"" + shortened(text()) + "\" is not known here; " + list + " are");
}

bool JsonView::is_null() const { return json_at(value_).is_null(); }
bool JsonView::is_object() const { return json_at(value_).is_object(); }
bool JsonView::is_array() const { return json_at(value_).is_array(); }
bool JsonView::is_text() const { return json_at(value_).is_string(); }
bool JsonView::is_number() const { return json_at(value_).is_number(); }

JsonView JsonView::get(const char* key) const {
  if (!is_object()) refuse("not a JSON object");
  const nlohmann::json& object = json_at(value_);
  const auto found = object.find(key);
  const void* value = found == object.end() ? nullptr : &*found;
  return {document_, value, path_.empty() ? key : path_ + "." + key};
}

std::vector<JsonView> JsonView::items() const {
  if (!is_array()) refuse("not a list");
  std::vector<JsonView> items;
  items.reserve(json_at(value_).size());
  for (const nlohmann::json& item : json_at(value_)) {
    items.push_back({document_, &item, path_ + "[" + std::to_string(items.size()) + "]"});
  }
  return items;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!is_object()) refuse("not a JSON object");
  std::vector<std::pair<std::string, JsonView>> members;
  members.reserve(json_at(value_).size());
  for (const auto& [name, value] : json_at(value_).items()) {
    members.emplace_back(name, JsonView{document_, &value, path_ + "." + shortened(name)});
  }
  return members;
}

std::string JsonView::text() const {
  if (!is_text()) refuse("not a text");
  return json_at(value_).get<std::string>();
}

std::string JsonView::text_or(const std::string& absent) const {
  return is_null() ? absent : text();
}

bool JsonView::flag() const {
  if (!json_at(value_).is_boolean()) refuse("neither true nor false");
  return json_at(value_).get<bool>();
}

bool JsonView::flag_or(bool absent) const { return is_null() ? absent : flag(); }

std::int64_t JsonView::integer(std::int64_t least, std::int64_t most) const {
  const nlohmann::json& value = json_at(value_);
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    refuse(shortened(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)) +
           " is not an integer of " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value.get<std::int64_t>();
}

}  // namespace zl
