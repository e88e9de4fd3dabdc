#include "scenarios/files/resolve.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "scenarios/files/attention_layout.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/defaults.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/model_folder.h"
#include "scenarios/files/scenario_checks.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/files/strategy_names.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// Names stay names; a path relative to `folder` becomes one the process can open.
std::string located(const std::string& text, const fs::path& folder) {
  const std::string path = (folder / text).string();
  return is_file(model_path(path)) ? path : text;
}

// The folder of a model that is one, with its weights or its tokenizer; else empty.
std::string model_folder(const Json& value, const fs::path& folder) {
  if (!value.is_string() || catalog_has("models", value.get<std::string>())) return {};
  for (const fs::path& path :
       {folder / value.get<std::string>(), fs::path(value.get<std::string>())}) {
    if (fs::is_directory(path)) return path.string();
  }
  return {};
}

// A model that is a folder brings its weights and its tokenizer, unless others are named for it:
// what a file names is for that file's model.
void take_model_folder(const Json& run, const ScenarioOverrides& overrides,
                       const std::string& folder, RunSettings& out) {
  const bool of_file = !overrides.model;
  const bool are_named = !out.weights.empty() && (of_file || overrides.weights);
  if (out.weights == "random") {
    out.weights.clear();
  } else if (!are_named && !folder.empty() && has_weights(folder)) {
    out.weights = folder;
  }
  const bool is_named = run.contains("tokenizer") && (of_file || overrides.tokenizer);
  if (!is_named && !folder.empty() && has_tokenizer(folder)) out.tokenizer = folder;
}

ModelConfig resolve_model(const Json& value, const fs::path& folder) {
  if (value.is_object()) return model_from_json(value, "inline");
  const std::string name = text_at(value, "model");
  return load_model(catalog_has("models", name) ? name : located(name, folder));
}

void resolve_cluster(const Json& value, const fs::path& folder, Scenario& out) {
  if (value.is_object()) {
    out.cluster = value.contains("name") ? text_at(value["name"], "cluster.name") : "inline";
    out.cluster_json = to_text(value);
    return;
  }
  const std::string name = text_at(value, "cluster");
  const std::string path = located(name, folder);
  out.cluster = is_file(path) ? name : canonical_cluster(name);
  if (!catalog_has("clusters", name) && is_file(path)) {
    out.cluster = fs::path(path).stem().string();
    out.cluster_json = to_text(parse_json(read_file(path), path));
  }
}

ImportedStrategy resolve_strategy(const Json& value, std::size_t index, const fs::path& folder,
                                  const StrategyEdits& edits, const ImportContext& context) {
  StrategyText file;
  if (value.is_object()) {
    file = {to_text(value), "strategy-" + std::to_string(index + 1)};
  } else {
    const std::string name = text_at(value, "strategies");
    file = read_strategy(catalog_has("strategies", name) ? name : located(name, folder));
  }
  return import_deepspeed(edited_strategy(file.text, file.source, edits), file.source, context);
}

// The path of a strategy that is a file, empty for names of the catalogue and objects.
std::string path_of(const Json& value, const fs::path& folder) {
  if (!value.is_string()) return {};
  const std::string name = value.get<std::string>();
  if (catalog_has("strategies", name)) return {};
  const std::string path = located(name, folder);
  return is_file(path) ? path : "";
}

// Files that have their name from one base name, each others' or the catalogue's, have it from
// their paths instead.
void tell_apart(const Json& list, const fs::path& folder, const StrategyEdits& edits,
                const ImportContext& context, std::vector<ImportedStrategy>& strategies) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t index = 0; index < strategies.size(); ++index) {
    by_name[strategies[index].strategy.name].push_back(index);
  }
  for (const auto& [name, indices] : by_name) {
    if (indices.size() < 2) continue;
    std::vector<std::string> paths;
    std::vector<std::size_t> files;
    for (const std::size_t index : indices) {
      const std::string path = path_of(list[index], folder);
      if (path.empty()) continue;
      paths.push_back(path);
      files.push_back(index);
    }
    const std::vector<std::string> names = names_by_path(paths);
    for (std::size_t i = 0; i < names.size(); ++i) {
      ImportContext named = context;
      named.name = names[i];
      const StrategyText file = read_strategy(paths[i]);
      strategies[files[i]] =
          import_deepspeed(edited_strategy(file.text, names[i], edits), file.source, named);
    }
  }
}

void resolve_strategies(const Json& list, const fs::path& folder, const ScenarioOverrides& given,
                        const sim::ClusterSpec& cluster, Scenario& out) {
  if (!list.is_array() || list.empty()) {
    throw Error(ErrorCode::invalid, "strategies: " + shown(list) +
                                        " is not a list of names or objects, such as [\"zero-2\"]");
  }
  const RunSettings& run = out.run;
  const ImportContext context{
      .ranks = run.ranks,
      .model = &out.model,
      .precision = run.precision,
      .micro_batch = run.micro_batch,
      .gradient_accumulation = run.gradient_accumulation,
      .steps = run.steps,
      .batch_is_default = !given.micro_batch && !given.gradient_accumulation,
      .default_precision = sim::default_precision(cluster)};
  std::vector<ImportedStrategy> strategies;
  for (std::size_t index = 0; index < list.size(); ++index) {
    strategies.push_back(resolve_strategy(list[index], index, folder, given.edits, context));
  }
  tell_apart(list, folder, given.edits, context, strategies);
  std::set<std::string> names;
  for (ImportedStrategy& strategy : strategies) {
    require_runnable(strategy);
    warn_of_precision(cluster, out.cluster, strategy);
    if (!names.insert(strategy.strategy.name).second) {
      throw Error(ErrorCode::invalid, "strategies: \"" + strategy.strategy.name +
                                          "\" occurs twice; set x-zerolab.name of one of them");
    }
    OffloadConfig& offload = strategy.strategy.offload;
    if (offload.files() && !run.nvme_path.empty()) offload.nvme_path = run.nvme_path;
    out.strategies.push_back(std::move(strategy));
  }
}

// Another cluster than the file's has other ranks: those of the file would leave some of its GPUs
// idle, or want more than there are. Returns what was done about it.
std::string follow_cluster(const ScenarioOverrides& overrides, Json& document) {
  if (!overrides.cluster || overrides.ranks) return "";
  const std::string cluster = canonical_cluster(*overrides.cluster);
  if (document.value("cluster", Json("local")) == cluster || devices_in_name(cluster) == 0) {
    return "";
  }
  const auto run = document.find("run");
  if (run == document.end() || !run->is_object() || !run->contains("ranks")) return "";
  const std::string before = shown((*run)["ranks"]);
  run->erase("ranks");
  if (before == std::to_string(devices_in_name(cluster))) return "";
  return "ranks: all " + std::to_string(devices_in_name(cluster)) + " of --cluster " + cluster +
         ", not the " + before + " of the file; --ranks " + before + " keeps them";
}

}  // namespace

Scenario resolve_scenario(Json document, const std::string& name,
                          const std::filesystem::path& folder, const ScenarioOverrides& overrides) {
  check_keys(document, "", {"schema", "name", "model", "cluster", "strategies", "run"});
  if (document.contains("schema") && document["schema"] != 1) {
    throw Error(ErrorCode::invalid, "schema: " + shown(document["schema"]) + " is not 1");
  }
  std::string followed = follow_cluster(overrides, document);
  apply_overrides(overrides, document);
  if (!document.contains("model")) {
    throw Error(ErrorCode::invalid, "model: missing; give a name, a path or an object");
  }
  Scenario out;
  const bool named = document.contains("name");
  out.name = named ? text_at(document["name"], "name") : name;
  require_name(out.name, named ? "name" : "scenario: the file's name, without the key \"name\"");
  out.model = resolve_model(document["model"], folder);
  resolve_cluster(document.value("cluster", Json("local")), folder, out);
  out.run = read_run_settings(document["run"]);
  out.model = for_task(std::move(out.model), out.run);
  if (!overrides.data) out.run.data = located(out.run.data, folder);
  if (!overrides.eval_data) out.run.eval_data = located(out.run.eval_data, folder);
  take_model_folder(document["run"], overrides, model_folder(document["model"], folder), out.run);
  if (!overrides.software && !catalog_has("software", out.run.software)) {
    out.run.software = located(out.run.software, folder);
  }
  if (out.run.ranks == 0) out.run.ranks = default_ranks(out);
  const bool own_length = out.run.sequence_length != 0;
  if (!own_length) out.run.sequence_length = default_sequence_length(out.model);
  check_sequence_length(out.run, out.model);
  check_evaluation(out.run, out.model);
  const Json all = {"zero-0", "zero-1", "zero-2", "zero-3", "zero-3-recompute"};
  const sim::ClusterSpec cluster = checked_cluster(out);
  resolve_strategies(document.value("strategies", all), folder, overrides, cluster, out);
  std::vector<std::string> cuts = memory_cut(out, cluster);
  for (std::string& cut : beyond_model(out)) cuts.push_back(std::move(cut));
  if (!followed.empty()) cuts.push_back(std::move(followed));
  if (!own_length) {
    if (is_long_by_default(out.model)) cuts.push_back(long_default_text(out.model));
    for (std::string& cut : sequence_cut(out)) cuts.push_back(std::move(cut));
  }
  const SparseAttentionConfig trained = attention_layout(out.run.weights, out.model);
  for (ImportedStrategy& each : out.strategies) {
    each.warnings.insert(each.warnings.end(), cuts.begin(), cuts.end());
    const std::string other = other_layout(each.strategy.sparse_attention, trained);
    if (!other.empty()) each.warnings.push_back(other);
  }
  require_texts(scenario_to_json(out), "");
  return out;
}

}  // namespace zl
