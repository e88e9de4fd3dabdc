#include "gui/models/mesh_edit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/strategy_edits.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/variation.h"
#include "simulator/json/reading.h"

namespace zl::gui {
namespace {

// Where an edited strategy keeps what it was made from: a name, or its JSON.
constexpr const char* kPreset = "x-preset";

std::string text_of(const std::string& entry) {
  return catalog_has("strategies", entry) ? std::string(catalog_text("strategies", entry)) : entry;
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& each : value) list += (list.empty() ? "" : ",") + each.dump();
  return list;
}

// Of a file the study knows what was in it.
std::string preset_of(const Study& study, const std::string& entry) {
  const Json json = json_or_null(entry);
  if (json.is_object() && json.contains(kPreset)) return text_of(json[kPreset]);
  if (json.is_object() || catalog_has("strategies", entry)) return entry;
  for (const StrategyStudy& each : study.strategies) {
    if (each.name() == name_of_entry(entry)) {
      return strategy_to_json(each.imported.strategy).dump();
    }
  }
  return entry;
}

std::int64_t number(const char* key, const std::string& text) {
  const Json value = json_or_null(text);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  throw Error(ErrorCode::invalid, std::string("x-zerolab.parallel.") + key + ": \"" + text +
                                      "\" is not a whole number");
}

std::size_t place_of(std::string_view key) {
  return static_cast<std::size_t>(std::ranges::find(kMeshKeys, key) - kMeshKeys.begin());
}

// What of the texts is another than the preset's; a number that is taken away is 1.
StrategyEdits edits_of(const MeshTexts& texts, const MeshTexts& preset) {
  StrategyEdits edits;
  // The text of a key where it is another.
  const auto changed = [&](const char* key) -> std::optional<std::string> {
    const std::size_t at = place_of(key);
    return texts[at] == preset[at] ? std::nullopt : std::optional(texts[at]);
  };
  const auto set_number = [&](const char* key, std::optional<std::int64_t>& out) {
    if (const auto text = changed(key)) out = text->empty() ? 1 : number(key, *text);
  };
  const auto set_flag = [&](const char* key, std::optional<bool>& out) {
    if (const auto text = changed(key)) out = *text == "true";
  };
  set_number("tensor", edits.tensor);
  set_flag("sequence_parallel", edits.sequence_parallel);
  set_flag("tensor_overlap", edits.tensor_overlap);
  set_number("pipeline", edits.pipeline);
  set_number("virtual_stages", edits.virtual_stages);
  set_number("replicate", edits.replicate);
  if (const auto text = changed("schedule")) edits.schedule = text->empty() ? "1f1b" : *text;
  if (const auto text = changed("layers_per_stage")) {
    edits.layers_per_stage = text->empty() ? "even" : *text;
  }
  return edits;
}

}  // namespace

std::string name_of_entry(const std::string& entry) {
  const Json json = json_or_null(entry);
  if (!json.is_object()) return std::string(name_of_file(entry));
  const Json own = json.value("x-zerolab", Json::object());
  return own.is_object() ? text_of(own.value("name", Json())) : "";
}

int entry_of(const Study& study, const Document& document, const std::string& strategy) {
  std::vector<std::string> entries = document.strategies();
  if (entries.empty()) entries = listed_strategies(study);
  const auto found = std::ranges::find(entries, strategy, name_of_entry);
  return found == entries.end() ? -1 : static_cast<int>(found - entries.begin());
}

MeshTexts mesh_of_entry(const std::string& entry) {
  MeshTexts texts;
  const Json json = json_or_null(text_of(entry));
  const Json own = json.is_object() ? json.value("x-zerolab", Json::object()) : Json::object();
  const Json parallel = own.is_object() ? own.value("parallel", Json::object()) : Json::object();
  if (!parallel.is_object()) return texts;
  for (std::size_t i = 0; i < kMeshKeys.size(); ++i) {
    texts[i] = text_of(parallel.value(kMeshKeys[i], Json()));
  }
  return texts;
}

Document with_mesh(const Study& study, const Document& document, int entry,
                   const MeshTexts& texts) {
  std::vector<std::string> entries = document.strategies();
  if (entries.empty()) entries = listed_strategies(study);
  std::string& own = entries.at(static_cast<std::size_t>(entry));
  const std::string preset = preset_of(study, own);
  const StrategyEdits edits = edits_of(texts, mesh_of_entry(preset));
  own = preset;
  if (edits.any()) {
    Json json = parse_json(edited_strategy(text_of(preset), preset, edits), preset);
    json[kPreset] = preset;
    own = json.dump();
  }
  return document.with_strategies(entries);
}

Document with_mesh_key(const Study& study, const Document& document, const std::string& key,
                       const std::string& text) {
  const std::size_t at = place_of(key);
  const std::vector<std::string> given = document.strategies();
  const std::vector<std::string> entries = given.empty() ? listed_strategies(study) : given;
  Document next = document.with_strategies(entries);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    MeshTexts texts = mesh_of_entry(entries[i]);
    texts.at(at) = text;
    next = with_mesh(study, next, static_cast<int>(i), texts);
  }
  return next;
}

}  // namespace zl::gui
