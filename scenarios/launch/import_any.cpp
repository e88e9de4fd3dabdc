#include "scenarios/launch/import_any.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/torchtitan.h"

namespace zl {
namespace {

ImportedStrategy only_strategy(const std::string& path) {
  Scenario scenario = load_scenario(path);
  if (scenario.strategies.size() == 1) return std::move(scenario.strategies.front());
  throw Error(ErrorCode::invalid,
              path + ": has " + std::to_string(scenario.strategies.size()) +
                  " strategies; leave the one that you run, or give its own file or name");
}

ImportedStrategy import_file(const std::string& path, const ImportContext& context) {
  if (path.ends_with(".toml")) return import_torchtitan(read_file(path), path, context);
  const std::string text = read_file(path);
  require_no_pickle(text, path);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_json =
      path.ends_with(".json") || (begin != std::string::npos && text[begin] == '{');
  if (!is_json) return import_megatron(text, path, context);
  const Json json = Json::parse(text, nullptr, false, true);
  if (file_kind(json) == FileKind::scenario) return only_strategy(path);
  return load_strategy(path, context);
}

}  // namespace

ImportedStrategy import_any(const std::string& name_or_path, const ImportContext& context) {
  const bool is_file = std::filesystem::is_regular_file(name_or_path);
  ImportedStrategy imported =
      is_file ? import_file(name_or_path, context) : load_strategy(name_or_path, context);
  if (imported.refusals.empty()) return imported;
  throw Error(ErrorCode::invalid, name_or_path + ": " + imported.refusals.front());
}

}  // namespace zl
