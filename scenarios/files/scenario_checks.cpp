#include "scenarios/files/scenario_checks.h"

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/defaults.h"

namespace zl {

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

std::vector<std::string> beyond_model(const Scenario& scenario) {
  const std::int64_t length = scenario.run.sequence_length;
  const std::int64_t most = scenario.model.scaled_positions();
  if (length <= most) return {};
  return {"sequences of " + std::to_string(length) + " are longer than the " +
          std::to_string(most) + " (max_sequence) that " + scenario.model.name +
          " is made for: rotary positions go on, but a model trained on " + std::to_string(most) +
          " has not seen them"};
}

std::vector<std::string> sequence_cut(const Scenario& scenario) {
  const std::int64_t length = scenario.run.sequence_length, most = scenario.model.max_sequence;
  if (length >= most) return {};
  return {"sequences of " + std::to_string(length) +
          ", the model's sliding window, where its max_sequence is " + std::to_string(most) +
          ": attention here is full"};
}

void warn_of_precision(const sim::ClusterSpec& cluster, const std::string& name,
                       ImportedStrategy& imported) {
  const DType dtype = imported.strategy.precision.compute_dtype;
  if (cluster.compute_is_host || dtype == DType::f32) return;
  if (sim::has_tensor_peak(cluster.device, dtype)) return;
  imported.warnings.push_back(std::string(name_of(dtype)) + " is no faster than fp32 on " + name +
                              ", whose default is " + name_of(sim::default_precision(cluster)));
}

}  // namespace zl
