#include "scenarios/files/scenario.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/nearest.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/file_kind.h"
#include "scenarios/files/json_reading.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/run_settings.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/simulate.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// Names stay names; a path relative to `folder` becomes one the process can open.
std::string located(const std::string& text, const fs::path& folder) {
  const fs::path path = folder / text;
  return fs::is_regular_file(path) ? path.string() : text;
}

ModelConfig resolve_model(const Json& value, const fs::path& folder) {
  if (value.is_object()) return model_from_json(value, "inline");
  const std::string name = text_at(value, "model");
  return load_model(catalog_has("models", name) ? name : located(name, folder));
}

void resolve_cluster(const Json& value, const fs::path& folder, Scenario& out) {
  if (value.is_object()) {
    out.cluster = value.contains("name") ? text_at(value["name"], "cluster.name") : "inline";
    out.cluster_json = value.dump();
    return;
  }
  const std::string name = text_at(value, "cluster");
  const std::string path = located(name, folder);
  out.cluster = name;
  if (!catalog_has("clusters", name) && fs::is_regular_file(path)) {
    out.cluster = fs::path(path).stem().string();
    out.cluster_json = parse_json(read_text_file(path), path).dump();
  }
}

// "1024xh100" 1024; 0 of a name without a count and of a file.
std::int64_t devices_in_name(const Scenario& scenario) {
  const std::size_t digits = scenario.cluster.find_first_not_of("0123456789");
  const bool counted = scenario.cluster_json.empty() && digits > 0 && digits < 8 &&
                       digits != std::string::npos && scenario.cluster[digits] == 'x';
  return counted ? std::stoll(scenario.cluster.substr(0, digits)) : 0;
}

// The devices a cluster name promises: "1024xh100" 1024, "h200" 1, "local" 4 threads.
std::int64_t default_ranks(const Scenario& scenario) {
  if (scenario.cluster == "local") return 4;
  if (!scenario.cluster_json.empty()) {
    throw Error(ErrorCode::invalid,
                "run.ranks: missing; give it, the cluster is not from the catalogue");
  }
  return std::max<std::int64_t>(1, devices_in_name(scenario));
}

// More ranks than the name has devices would be another cluster.
sim::ClusterSpec checked_cluster(const Scenario& scenario) {
  sim::ClusterSpec cluster = scenario_cluster(scenario);
  const std::int64_t ranks = scenario.run.ranks, devices = devices_in_name(scenario);
  if (devices > 0 && ranks > devices) {
    throw Error(ErrorCode::invalid, "run.ranks: " + std::to_string(ranks) +
                                        " is more than the devices of " + scenario.cluster +
                                        "; use --cluster " + std::to_string(ranks) +
                                        scenario.cluster.substr(scenario.cluster.find('x')));
  }
  return cluster;
}

std::vector<std::string> memory_cut(const Scenario& scenario, const sim::ClusterSpec& cluster) {
  const std::int64_t asked = scenario.run.device_memory;
  if (memory_budget(scenario, cluster) >= asked) return {};
  return {"run.device_memory: " + format_bytes(asked) + " is more than the " +
          format_bytes(memory_budget(scenario, cluster)) + " of a device of " + scenario.cluster +
          ", which simulated runs keep to"};
}

std::int64_t default_sequence_length(const ModelConfig& model) {
  return model.sliding_window > 0 ? std::min(model.sliding_window, model.max_sequence)
                                  : model.max_sequence;
}

ImportedStrategy resolve_strategy(const Json& value, std::size_t index, const fs::path& folder,
                                  const ImportContext& context) {
  if (value.is_object()) {
    return import_deepspeed(value.dump(), "strategy-" + std::to_string(index + 1), context);
  }
  const std::string name = text_at(value, "strategies");
  return load_strategy(catalog_has("strategies", name) ? name : located(name, folder), context);
}

// What the devices do worse than a strategy may expect of them.
void warn_of_precision(const sim::ClusterSpec& cluster, const std::string& name,
                       ImportedStrategy& imported) {
  const DType dtype = imported.strategy.precision.compute_dtype;
  if (cluster.compute_is_host || dtype == DType::f32) return;
  if (sim::has_tensor_peak(cluster.device, dtype)) return;
  imported.warnings.push_back(std::string(name_of(dtype)) + " is no faster than fp32 on " + name +
                              ", whose default is " + name_of(sim::default_precision(cluster)));
}

void resolve_strategies(const Json& list, const fs::path& folder, bool batch_is_default,
                        const sim::ClusterSpec& cluster, Scenario& out) {
  if (!list.is_array() || list.empty()) {
    throw Error(ErrorCode::invalid, "strategies: " + list.dump() +
                                        " is not a list of names or objects, such as [\"zero-2\"]");
  }
  const RunSettings& run = out.run;
  const ImportContext context{run.ranks,
                              &out.model,
                              run.precision,
                              run.micro_batch,
                              run.gradient_accumulation,
                              run.steps,
                              batch_is_default,
                              sim::default_precision(cluster)};
  std::set<std::string> names;
  for (std::size_t index = 0; index < list.size(); ++index) {
    ImportedStrategy strategy = resolve_strategy(list[index], index, folder, context);
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

// The document with the overrides in place of what it says.
void apply_overrides(const ScenarioOverrides& o, Json& document) {
  if (o.model) document["model"] = *o.model;
  if (o.cluster) document["cluster"] = *o.cluster;
  if (!o.strategies.empty()) document["strategies"] = o.strategies;
  Json& run = document["run"];
  if (run.is_null()) run = Json::object();
  if (!run.is_object()) return;
  if (o.ranks) run["ranks"] = *o.ranks;
  if (o.steps) run["steps"] = *o.steps;
  if (o.seed) run["seed"] = *o.seed;
  if (o.sequence_length) run["sequence_length"] = *o.sequence_length;
  if (o.micro_batch) run["micro_batch"] = *o.micro_batch;
  if (o.gradient_accumulation) run["gradient_accumulation"] = *o.gradient_accumulation;
  if (o.data) run["data"] = *o.data;
  if (o.tokenizer) run["tokenizer"] = *o.tokenizer;
  if (o.device_memory) run["device_memory"] = *o.device_memory;
  if (o.host_memory) run["host_memory"] = *o.host_memory;
  if (o.nvme_path) run["nvme_path"] = *o.nvme_path;
  if (o.link_bandwidth) run["link_bandwidth"] = *o.link_bandwidth;
  if (o.communicator) run["communicator"] = *o.communicator;
  if (o.stack) run["stack"] = *o.stack;
  if (o.precision) run["precision"] = *o.precision;
  if (o.deterministic) run["deterministic"] = *o.deterministic;
}

Scenario resolve(Json document, const std::string& name, const fs::path& folder,
                 const ScenarioOverrides& overrides) {
  check_keys(document, "", {"schema", "name", "model", "cluster", "strategies", "run"});
  if (document.contains("schema") && document["schema"] != 1) {
    throw Error(ErrorCode::invalid, "schema: " + document["schema"].dump() + " is not 1");
  }
  apply_overrides(overrides, document);
  if (!document.contains("model")) {
    throw Error(ErrorCode::invalid, "model: missing; give a name, a path or an object");
  }
  Scenario out;
  out.name = document.contains("name") ? text_at(document["name"], "name") : name;
  out.model = resolve_model(document["model"], folder);
  resolve_cluster(document.value("cluster", Json("local")), folder, out);
  out.run = read_run_settings(document["run"]);
  if (!overrides.data) out.run.data = located(out.run.data, folder);
  if (!overrides.stack && !catalog_has("stacks", out.run.stack)) {
    out.run.stack = located(out.run.stack, folder);
  }
  if (out.run.ranks == 0) out.run.ranks = default_ranks(out);
  const bool own_length = out.run.sequence_length != 0;
  if (!own_length) out.run.sequence_length = default_sequence_length(out.model);
  check_sequence_length(out.run, out.model);
  const Json all = {"zero-0", "zero-1", "zero-2", "zero-3", "zero-3-recompute"};
  const bool batch_is_default = !overrides.micro_batch && !overrides.gradient_accumulation;
  const sim::ClusterSpec cluster = checked_cluster(out);
  resolve_strategies(document.value("strategies", all), folder, batch_is_default, cluster, out);
  std::vector<std::string> cuts = memory_cut(out, cluster);
  if (!own_length && out.run.sequence_length < out.model.max_sequence) {
    cuts.push_back("sequences of " + std::to_string(out.run.sequence_length) +
                   ", the model's sliding window, where its max_sequence is " +
                   std::to_string(out.model.max_sequence) + ": attention here is full");
  }
  for (ImportedStrategy& each : out.strategies) {
    each.warnings.insert(each.warnings.end(), cuts.begin(), cuts.end());
  }
  return out;
}

Json bare_model(const std::string& model) { return {{"schema", 1}, {"model", model}}; }

}  // namespace

Scenario scenario_from_json(std::string_view text, std::string_view source,
                            const ScenarioOverrides& overrides) {
  const fs::path path(source);
  return resolve(parse_json(text, source), path.stem().string(), path.parent_path(), overrides);
}

namespace {

// People give `run` the file they have: what else it is, is said with the line that takes it.
void require_scenario(const Json& file, const std::string& path) {
  const FileKind kind = file_kind(file);
  if (kind == FileKind::model) {
    throw Error(ErrorCode::invalid,
                path + ": this is a model, not a scenario; use --model " + path);
  }
  if (kind == FileKind::strategy) {
    throw Error(ErrorCode::invalid,
                path + ": this is a DeepSpeed strategy, not a scenario; use --model MODEL " +
                    "--strategy " + path);
  }
}

Scenario load_scenario_file(const std::string& path, const ScenarioOverrides& overrides) {
  const std::string text = read_text_file(path);
  require_scenario(parse_json(text, path), path);
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
    return resolve(bare_model(*overrides.model), *overrides.model, "", overrides);
  }
  if (catalog_has("studies", name_or_path)) {
    const Json document = parse_json(catalog_text("studies", name_or_path), name_or_path);
    return resolve(document, name_or_path, "", overrides);
  }
  if (catalog_has("models", name_or_path)) {
    return resolve(bare_model(name_or_path), name_or_path, "", overrides);
  }
  if (fs::is_regular_file(name_or_path)) return load_scenario_file(name_or_path, overrides);
  std::vector<std::string> known = catalog_names("studies");
  const std::vector<std::string> models = catalog_names("models");
  const std::string studies = join(known, ", ");
  known.insert(known.end(), models.begin(), models.end());
  throw Error(ErrorCode::invalid,
              "scenario: \"" + name_or_path +
                  "\" is not a study, a model or a file; the nearest name is \"" +
                  nearest(name_or_path, known) + "\". Studies: " + studies +
                  "; models: `zerolab show models`");
}

void check_real_ranks(const Scenario& scenario, std::string_view backend) {
  if (scenario.run.ranks >= 1 && scenario.run.ranks <= kMaxRealRanks) return;
  throw Error(ErrorCode::invalid, "run.ranks: " + std::to_string(scenario.run.ranks) +
                                      " is not in 1..64, the ranks that backend " +
                                      std::string(backend) + " runs; use fewer, or --backend sim");
}

namespace {

Json canonical(const Scenario& scenario) {
  Json out = {{"schema", 1}};
  out["model"] = model_to_json(scenario.model);
  out["cluster"] =
      scenario.cluster_json.empty() ? Json(scenario.cluster) : Json::parse(scenario.cluster_json);
  out["strategies"] = Json::array();
  for (const ImportedStrategy& imported : scenario.strategies) {
    out["strategies"].push_back(strategy_to_json(imported.strategy));
  }
  out["run"] = run_settings_to_json(scenario.run);
  return out;
}

}  // namespace

std::string canonical_json(const Scenario& scenario, int indent) {
  Json out = canonical(scenario);
  out["name"] = scenario.name;
  return out.dump(indent);
}

Scenario with_one_strategy(const Scenario& scenario, const ImportedStrategy& strategy) {
  Scenario one = scenario;
  one.strategies = {strategy};
  return one;
}

std::string content_hash(const Scenario& scenario) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : canonical(scenario).dump()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace zl
