#include "scenarios/run/runner.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/log.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/run/cpu_backend.h"
#include "scenarios/run/cuda_backend.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/real_run.h"
#include "scenarios/run/replay.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/simulate.h"
#include "simulator/cluster/software.h"
#include "simulator/world.h"

namespace zl {
namespace {

Scenario with_ranks(const Scenario& scenario) {
  Scenario copy = scenario;
  copy.run.ranks = std::max<std::int64_t>(1, copy.run.ranks);
  return copy;
}

RunResult out_of_memory(std::string message) {
  RunResult result;
  result.outcome = Outcome::out_of_memory;
  result.message = std::move(message);
  return result;
}

ProgramOptions recording_options(const Scenario& scenario, const RunHooks& hooks) {
  ProgramOptions options = program_options(scenario);
  options.stop = hooks.stop;
  options.on_step = hooks.on_step;
  options.overflows = hooks.overflows;
  return options;
}

// "steps 3, 4, 7 and 12 more".
std::string list_steps(const std::vector<std::int64_t>& steps) {
  constexpr std::size_t kNamed = 8;
  std::string text = steps.size() == 1 ? "step " : "steps ";
  for (std::size_t i = 0; i < std::min(steps.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(steps[i]);
  }
  if (steps.size() > kNamed) text += " and " + std::to_string(steps.size() - kNamed) + " more";
  return text;
}

RunResult run_simulated(const Scenario& scenario, const Strategy& strategy, const RunHooks& hooks) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const Verdict verdict = judge(scenario, strategy, simulated_device(scenario, cluster),
                                recording_options(scenario, hooks));
  if (!verdict.fits()) {
    RunResult refused = out_of_memory(verdict.refusal);
    refused.need = verdict.need;
    refused.software_held = verdict.held;
    return refused;
  }
  RunResult result = price_run(scenario, *verdict.recording, cluster);
  result.software_held = verdict.held;
  if (!hooks.overflows.empty()) {
    result.warnings.push_back("recorded without the update of " + list_steps(hooks.overflows) +
                              ", which the run that it is compared with skipped (fp16 overflow)");
  }
  if (hooks.on_trace) hooks.on_trace(verdict.recording->trace);
  return result;
}

// What a strategy that is to be fitted to the memory is fitted to: a device of the cluster, or the
// one that is here where the backend knows it better than the cluster "local".
DeviceProperties planning_device(const Scenario& scenario, const BackendCapabilities& backend) {
  if (backend.is_recording) return simulated_device(scenario, scenario_cluster(scenario));
  const bool here = scenario.cluster == "local" && backend.device;
  DeviceProperties device = here ? backend.device(static_cast<int>(scenario.run.ranks))
                                 : sim::device_properties(scenario_cluster(scenario));
  if (scenario.run.device_memory > 0) device.memory = scenario.run.device_memory;
  return device;
}

// Bytes that a rank may reserve of the device; 0: no limit.
std::int64_t capacity_of(const DeviceProperties& device) {
  const std::int64_t share = device.memory_is_host ? device.host_memory : 0;
  if (device.memory == 0 || share == 0) return std::max(device.memory, share);
  return std::min(device.memory, share);
}

void add_recording(BackendRegistry& registry) {
  registry.add("sim", [](const WorldOptions& options) { return sim::make_world(options, {}); }, {},
               {.is_recording = true, .takes_link_bandwidth = true});
}

// What the program takes of a machine without limits, in the message, too; nothing where that
// cannot be recorded.
void add_need(const Scenario& scenario, const ImportedStrategy& imported, RunResult& result) {
  try {
    const Replay unlimited = replay(scenario, imported);
    result.need = memory_need(unlimited.recording);
    result.message += "; it " + need_text(result.need, result.device_capacity);
  } catch (const Error& error) {
    log_debug(imported.strategy.name + ": what it needs is not known: " + error.what());
  }
}

// With its automatic recomputation, which is said.
Strategy decided(const Scenario& scenario, const Strategy& asked, const DeviceProperties& device) {
  Strategy strategy = resolve_recompute(scenario, asked, device);
  if (asked.recompute.mode == RecomputeMode::automatic) {
    log_debug(strategy.name + ": recomputes " + decided_recompute_text(strategy.recompute));
  }
  return strategy;
}

}  // namespace

Runner::Runner() {
  add_cpu(registry_);
  add_recording(registry_);
  add_cuda(registry_);
}

RunResult Runner::run(const Scenario& requested, const ImportedStrategy& imported,
                      const std::string& backend, const RunHooks& hooks) const {
  require_runnable(imported);
  const Scenario scenario = with_ranks(requested);
  const BackendCapabilities& can = registry_.capabilities(backend);
  std::unique_ptr<World> world;
  if (!can.is_recording) world = make_real_world(registry_, scenario, backend, hooks);
  RunResult result;
  try {
    const auto resolve = [&] {
      return decided(scenario, imported.strategy, planning_device(scenario, can));
    };
    result = can.is_recording ? run_simulated(scenario, resolve(), hooks)
                              : run_real(*world, scenario, resolve, can, hooks);
  } catch (const OutOfMemory& error) {
    result = out_of_memory(error.what());
  }
  result.predicted = can.is_recording;
  result.device_capacity = capacity_of(planning_device(scenario, can));
  if (result.predicted) {
    result.priced_from =
        price_basis(sim::with_strategy(scenario_cluster(scenario), imported.strategy),
                    imported.strategy.precision.compute_dtype);
  }
  const bool refused = result.outcome == Outcome::out_of_memory;
  if (refused && result.need.reserved == 0) add_need(scenario, imported, result);
  write_origin(scenario, imported, backend, result);
  return result;
}

}  // namespace zl
