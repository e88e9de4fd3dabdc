#include "scenarios/weights/label_names.h"

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "scenarios/files/model_folder.h"

namespace zl {
namespace {

constexpr const char* kNames = "id2label";

std::string name_of_none(std::int64_t label) { return "LABEL_" + std::to_string(label); }

bool names_as_many(const Json& config, std::int64_t labels) {
  const auto names = config.find(kNames);
  return names != config.end() && names->is_object() &&
         names->size() == static_cast<std::size_t>(labels);
}

}  // namespace

std::vector<std::string> label_names(const std::string& folder, std::int64_t labels) {
  const std::string path = path_in(folder, "config.json");
  const Json config = parse_json(read_file(path), path);
  if (!config.is_object() || !names_as_many(config, labels)) return {};
  const Json& given = config[kNames];
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid, path + ": " + kNames + ": " + what);
  };
  std::vector<std::string> names;
  std::map<std::string, std::int64_t> numbers;
  bool any = false;
  for (std::int64_t label = 0; label < labels; ++label) {
    const std::string number = std::to_string(label);
    const auto found = given.find(number);
    if (found == given.end()) {
      refuse("has no \"" + number + "\"; number the labels from 0 without gaps");
    }
    names.push_back(text_at(*found, path + ": " + kNames + "." + number));
    const auto [twin, is_new] = numbers.emplace(names.back(), label);
    if (!is_new) {
      refuse("\"" + shortened(names.back()) + "\" names both " + std::to_string(twin->second) +
             " and " + number + "; give each label a name of its own");
    }
    any = any || names.back() != name_of_none(label);
  }
  return any ? names : std::vector<std::string>{};
}

void set_label_names(std::int64_t labels, const std::vector<std::string>& names, Json& config) {
  config.erase("num_labels");  // an old spelling of the number of names
  if (names.empty() && names_as_many(config, labels)) return;
  Json ids = Json::object(), numbers = Json::object();
  for (std::int64_t label = 0; label < labels; ++label) {
    const auto at = static_cast<std::size_t>(label);
    const std::string name = at < names.size() ? names[at] : name_of_none(label);
    ids[std::to_string(label)] = name;
    numbers[name] = label;
  }
  config[kNames] = ids;
  config["label2id"] = numbers;
}

}  // namespace zl
