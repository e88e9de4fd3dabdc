#include "scenarios/files/load_scenario.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/resolve.h"

namespace zl {

namespace fs = std::filesystem;

Scenario scenario_from_json(std::string_view text, std::string_view source,
                            const ScenarioOverrides& overrides) {
  return resolve_scenario(parse_json(text, source), name_of_file(source),
                          fs::path(source).parent_path(), overrides);
}

namespace {

Json bare_model(const std::string& model) { return {{"schema", 1}, {"model", model}}; }

// What to call a scenario of a model alone.
std::string name_for(const std::string& model) {
  const std::string path = model_path(model);
  if (catalog_has("models", model) || !is_file(path)) {
    return known_model_name(model);
  }
  const std::string name = name_of_file(path);
  return name == "config" ? load_model(path).name : name;
}

// People give `run` the file they have: what else it is, is said with the line that takes it.
void require_scenario(const Json& file, const std::string& path) {
  const FileKind kind = file_kind(file);
  if (kind == FileKind::strategy) {
    throw Error(ErrorCode::invalid,
                path + ": this is a DeepSpeed strategy, not a scenario; use --model MODEL " +
                    "--strategy " + path);
  }
}

Scenario load_scenario_file(const std::string& path, const ScenarioOverrides& overrides) {
  const std::string text = read_file(path);
  require_no_pickle(text, path);
  if (const std::string kind = binary_kind(text); !kind.empty()) {
    throw Error(ErrorCode::invalid, path + ": this is " + kind + ", not a scenario, a JSON file");
  }
  const Json file = parse_json(text, path);
  if (file_kind(file) == FileKind::model) {
    return resolve_scenario(bare_model(path), name_for(path), "", overrides);
  }
  require_scenario(file, path);
  try {
    return scenario_from_json(text, path, overrides);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(path) != std::string::npos) throw;
    throw Error(error.code(), path + ": " + message);
  }
}

}  // namespace

Scenario load_scenario(const std::string& name_or_path, const ScenarioOverrides& overrides) {
  if (name_or_path.empty() && overrides.model) {
    const std::string& model = *overrides.model;
    return resolve_scenario(bare_model(model), name_for(model), "", overrides);
  }
  if (catalog_has("studies", name_or_path)) {
    const Json document = parse_json(catalog_text("studies", name_or_path), name_or_path);
    return resolve_scenario(document, name_or_path, "", overrides);
  }
  if (catalog_has("models", name_or_path)) {
    return resolve_scenario(bare_model(name_or_path), name_or_path, "", overrides);
  }
  const std::string path = model_path(name_or_path);
  if (is_file(path)) return load_scenario_file(path, overrides);
  for (const char* folder : {"studies", "models"}) {
    const std::string alike = catalog_canonical_name(folder, name_or_path);
    if (alike != name_or_path) return load_scenario(alike, overrides);
  }
  if (name_or_path.find('/') != std::string::npos) {
    throw Error(ErrorCode::invalid, "scenario: there is no file \"" + shortened(name_or_path) +
                                        "\"; `zerolab show studies` lists what is known by name");
  }
  std::vector<std::string> known = catalog_names("studies");
  const std::vector<std::string> models = catalog_names("models");
  const std::string studies = join(known, ", ");
  known.insert(known.end(), models.begin(), models.end());
  throw Error(ErrorCode::invalid,
              "scenario: \"" + shortened(name_or_path) +
                  "\" is not a study, a model or a file; the nearest name is \"" +
                  nearest(name_or_path, known) + "\". Studies: " + studies +
                  "; models: `zerolab show models`");
}

}  // namespace zl
