#include "scenarios/files/clusters.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/machine_memory.h"
#include "results/paths.h"
#include "scenarios/files/catalog.h"
#include "simulator/cluster/find_cluster.h"

namespace zl {

std::string local_cluster_path(const std::string& cluster) {
  return (data_folder() / (cluster + ".json")).string();
}

namespace {

// What is free changes by the second: predictions of one program share what was free at the first,
// so that an edit changes a headroom and nothing else does. Runs for real take what is free when
// they begin.
std::int64_t memory_of_predictions() {
  if (std::getenv("ZEROLAB_MEMORY") != nullptr) return machine_memory();
  static const std::int64_t memory = machine_memory();
  return memory;
}

sim::ClusterSpec with_memory(sim::ClusterSpec machine) {
  machine.host_memory = memory_of_predictions();
  return machine;
}

// What is parsed of the catalogue once: an edit in the dashboard asks for one several times.
template <typename T>
class Remembered {
 public:
  template <typename Parse>
  std::shared_ptr<const T> find_or(const std::string& name, Parse parse) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(name);
    if (found != known_.end()) return found->second;
    if (known_.size() >= kMost) known_.clear();
    return known_[name] = std::make_shared<const T>(parse());
  }

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const T>> known_;
};

}  // namespace

sim::ClusterSpec load_cluster(const std::string& given) {
  if (given.ends_with(".json")) return sim::parse_cluster(read_file(given), given);
  const std::string name_or_path = canonical_cluster(given);
  if (name_or_path == "local-cuda") {
    const std::string file = local_cluster_path(name_or_path);
    if (std::filesystem::exists(file)) {
      return with_memory(sim::parse_cluster(read_file(file), file));
    }
    throw Error(ErrorCode::invalid,
                "cluster: \"local-cuda\" is what `zerolab calibrate --backend "
                "cuda` measures, and " +
                    file + " is not there yet");
  }
  sim::ClusterSources sources;
  sources.gpus = catalog_names("clusters");
  sources.text = [](const std::string& gpu) { return std::string(catalog_text("clusters", gpu)); };
  if (name_or_path != "local") {
    static Remembered<sim::ClusterSpec> known;
    return *known.find_or(name_or_path, [&] { return sim::find_cluster(name_or_path, sources); });
  }
  const std::string path = local_cluster_path();
  if (std::filesystem::exists(path)) sources.local = read_file(path);
  return with_memory(sim::find_cluster(name_or_path, sources));
}

std::string software_text(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json")) return read_file(name_or_path);
  return std::string(catalog_text("software", name_or_path));  // in any case
}

namespace {

// The profile's file over that of its base (RFC 7386: null removes). What is fitted is not
// inherited by a profile that was fitted itself, nor are notes.
Json on_its_base(const std::string& name_or_path, int deepest) {
  Json profile = parse_json(software_text(name_or_path), name_or_path);
  if (!profile.is_object() || !profile.contains("base")) return profile;
  const std::string of_base = text_at(profile["base"], name_or_path + ": software.base");
  if (deepest == 0) {
    throw Error(ErrorCode::invalid, name_or_path +
                                        ": software.base: profiles begin from each "
                                        "other, or more than four deep");
  }
  Json whole = on_its_base(of_base, deepest - 1);
  if (profile.contains("fitted")) {
    for (const char* key : {"left_out", "priors", "step_error"}) whole.erase(key);
  }
  std::vector<std::string> notes;
  for (const auto& [key, value] : whole.items()) {
    if (key.starts_with("x-")) notes.push_back(key);
  }
  for (const std::string& key : notes) whole.erase(key);
  whole.merge_patch(profile);
  return whole;
}

}  // namespace

Json software_json(const std::string& name_or_path) { return on_its_base(name_or_path, 4); }

sim::Software load_software(const std::string& name_or_path) {
  const auto parse = [&] {
    return sim::parse_software(to_text(software_json(name_or_path)), name_or_path);
  };
  if (name_or_path.ends_with(".json")) return parse();
  static Remembered<sim::Software> known;
  return *known.find_or(name_or_path, parse);  // copied behind its lock
}

sim::ClusterSpec scenario_hardware(const Scenario& scenario) {
  return scenario.cluster_json.empty()
             ? load_cluster(scenario.cluster)
             : sim::parse_cluster(scenario.cluster_json, scenario.cluster);
}

namespace {

std::string software_on(const sim::ClusterSpec& cluster, const std::string& said) {
  const bool of_a_data_sheet = !cluster.calibration && !cluster.compute_is_host;
  if (said.empty()) return of_a_data_sheet ? kDefaultSoftware : "";
  return said == kOwnSoftware && !of_a_data_sheet ? "" : said;  // which it runs anyway
}

}  // namespace

std::string scenario_software(const Scenario& scenario) {
  return software_on(scenario_hardware(scenario), scenario.run.software);
}

bool recomputes_by_stage(const Scenario& scenario) {
  const std::string& software = scenario.run.software;
  return software.empty() || !load_software(software).abilities;
}

sim::ClusterSpec scenario_cluster(const Scenario& scenario) {
  sim::ClusterSpec cluster =
      sim::with_devices(scenario_hardware(scenario), static_cast<int>(scenario.run.ranks));
  const std::string software = software_on(cluster, scenario.run.software);
  if (!software.empty()) {
    cluster = sim::with_software(std::move(cluster), load_software(software), scenario.model);
  }
  return scenario.run.link_bandwidth > 0
             ? sim::with_link_bandwidth(std::move(cluster), scenario.run.link_bandwidth)
             : cluster;
}

std::int64_t memory_budget(const Scenario& scenario, const sim::ClusterSpec& cluster) {
  const DeviceProperties device = sim::device_properties(cluster);
  std::int64_t least = 0;
  for (const std::int64_t limit : {scenario.run.device_memory, device.memory,
                                   device.memory_is_host ? device.host_memory : 0}) {
    if (limit > 0) least = least > 0 ? std::min(least, limit) : limit;
  }
  return least;
}

}  // namespace zl
