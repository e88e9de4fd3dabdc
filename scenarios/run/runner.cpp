#include "scenarios/run/runner.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "backends/cpu/file_storage.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/run/corpus.h"
#include "scenarios/run/cpu_backend.h"
#include "scenarios/run/cuda_backend.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/measure.h"
#include "scenarios/run/simulate.h"
#include "simulator/world.h"

namespace zl {
namespace {

ProgramOptions hooked_options(const Scenario& scenario, const RunHooks& hooks) {
  ProgramOptions options = program_options(scenario);
  options.stop = hooks.stop;
  options.on_step = hooks.on_step;
  options.at_end = hooks.at_end;
  return options;
}

// A run may be resumed by the same run only, but longer, elsewhere, or under another name.
CheckpointConfig checkpoint_of(const Scenario& scenario, const Strategy& strategy,
                               CheckpointConfig config) {
  if (config.folder.empty()) return config;
  config.folder = (std::filesystem::path(config.folder) / strategy.name).string();
  Scenario alone = scenario;
  alone.name.clear();
  alone.cluster = "local";
  alone.strategies.clear();
  const RunSettings own = std::move(alone.run);
  alone.run = {};
  alone.run.ranks = own.ranks;
  alone.run.seed = own.seed;
  alone.run.sequence_length = own.sequence_length;
  alone.run.data = own.data;
  alone.run.tokenizer = own.tokenizer;
  alone.run.precision = own.precision;
  config.identity = canonical_json(alone) + strategy_to_json(strategy).dump();
  return config;
}

TokenSource open_data(const Scenario& scenario) {
  const auto& run = scenario.run;
  if (run.data == "synthetic") return TokenSource::synthetic(scenario.model.vocab, run.seed);
  const std::string path = run.data == "bible" ? king_james_bible() : run.data;
  const auto tokenizer = load_tokenizer(run.tokenizer == "byte" ? "" : run.tokenizer);
  TokenSource source = TokenSource::open(path, *tokenizer, scenario.model.vocab, run.seed);
  source.require(run.sequence_length);
  return source;
}

RankOutcome run_world(World& world, const Scenario& scenario, const Strategy& strategy,
                      const TokenSource& data, const ProgramOptions& options) {
  RankOutcome first;
  world.run([&](RankHandle handle) {
    RankOutcome outcome = run_rank(handle, scenario.model, strategy, data, options);
    // A process of a launched job keeps its own.
    if (handle.communicator.rank() == 0 || world.executed_ranks() == 1) first = std::move(outcome);
  });
  return first;
}

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

RunResult run_simulated(const Scenario& scenario, const Strategy& strategy, const RunHooks& hooks) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  const Verdict verdict = judge(scenario, strategy, simulated_device(scenario, cluster),
                                hooked_options(scenario, hooks));
  if (!verdict.fits()) return out_of_memory(verdict.refusal);
  RunResult result = price_run(scenario, *verdict.recording, cluster);
  if (hooks.on_trace) hooks.on_trace(verdict.recording->trace);
  return result;
}

// Of all devices that a real run uses, FLOP/s; 0: unknown.
double machine_peak_flops(const std::string& backend, int ranks, DType dtype) {
  if (backend != "cuda") return cluster_peak_flops(load_cluster("local"), dtype);
  const std::optional<sim::ClusterSpec> gpus = cuda_cluster(ranks);
  return gpus ? cluster_peak_flops(*gpus, dtype) : 0;
}

// What a strategy that is to be fitted to the memory is fitted to.
DeviceProperties planning_device(const Scenario& scenario, const std::string& backend) {
  if (backend == "sim") return simulated_device(scenario, scenario_cluster(scenario));
  DeviceProperties device = backend == "cuda" && scenario.cluster == "local"
                                ? cuda_device_properties(static_cast<int>(scenario.run.ranks))
                                : sim::device_properties(scenario_cluster(scenario));
  if (scenario.run.device_memory > 0) device.memory = scenario.run.device_memory;
  return device;
}

RunResult run_real(World& world, const Scenario& scenario, const Strategy& strategy,
                   const std::string& backend, const RunHooks& hooks) {
  const TokenSource data = open_data(scenario);
  ProgramOptions options = hooked_options(scenario, hooks);
  options.keep_trace = static_cast<bool>(hooks.on_trace);
  options.checkpoint = checkpoint_of(scenario, strategy, hooks.checkpoint);
  options.make_storage = [](const Strategy& s, int rank) {
    return cpu::make_file_storage(s.offload.nvme_path, rank, s.offload.aio);
  };
  RankOutcome outcome = run_world(world, scenario, strategy, data, options);
  write_measured_times(outcome.trace, outcome.result);
  write_rates(scenario, strategy,
              machine_peak_flops(backend, world.ranks(), strategy.precision.compute_dtype),
              outcome.result);
  if (hooks.on_trace) hooks.on_trace(outcome.trace);
  return std::move(outcome.result);
}

}  // namespace

Runner::Runner() {
  add_cpu(registry_);
  registry_.add("sim", [](const WorldOptions& options) { return sim::make_world(options, {}); });
  add_cuda(registry_);
}

RunResult Runner::run(const Scenario& requested, const ImportedStrategy& imported,
                      const std::string& backend, const RunHooks& hooks) const {
  require_runnable(imported);
  const Scenario scenario = with_ranks(requested);
  const bool simulated = backend == "sim";
  std::unique_ptr<World> world;
  if (!simulated) {
    const bool processes = scenario.run.communicator == "mpi";
    if (backend == "cpu" && !processes) check_real_ranks(scenario, backend);
    if (backend != "cpu" && processes) {
      throw Error(ErrorCode::invalid,
                  "run.communicator: mpi is of the cpu backend, not of " + backend + "; remove it");
    }
    if (backend != "cpu" && scenario.run.link_bandwidth > 0) {
      throw Error(ErrorCode::invalid,
                  "run.link_bandwidth: the cpu backend and the simulator can be slowed, not " +
                      backend + "; remove it");
    }
    if (!scenario.run.stack.empty()) {
      throw Error(ErrorCode::invalid, "run.stack: \"" + scenario.run.stack +
                                          "\" is for simulated runs, not for " + backend +
                                          "; remove it, or use --backend sim");
    }
    world = registry_.make(backend,
                           {static_cast<int>(scenario.run.ranks), 0, scenario.run.deterministic,
                            scenario.run.link_bandwidth, scenario.run.communicator});
    if (world->ranks() != scenario.run.ranks) {
      throw Error(ErrorCode::invalid, "run.ranks: " + std::to_string(scenario.run.ranks) +
                                          " is not the " + std::to_string(world->ranks()) +
                                          " processes that were started; use --ranks " +
                                          std::to_string(world->ranks()));
    }
  }
  RunResult result;
  try {
    const Strategy strategy =
        resolve_recompute(scenario, imported.strategy, planning_device(scenario, backend));
    result = simulated ? run_simulated(scenario, strategy, hooks)
                       : run_real(*world, scenario, strategy, backend, hooks);
  } catch (const OutOfMemory& error) {
    result = out_of_memory(error.what());
  }
  write_origin(scenario, imported, backend, result);
  return result;
}

Strategy resolve_recompute(const Scenario& scenario, Strategy strategy,
                           const DeviceProperties& device) {
  if (strategy.recompute.mode != RecomputeMode::automatic) return strategy;
  ProgramOptions options = program_options(scenario);
  options.steps = std::min<std::int64_t>(2, options.steps);
  // A GPU's recomputation saves nothing of the host: keeping inputs there takes more of it.
  DeviceProperties recording = device;
  if (!device.memory_is_host) recording.host_memory = 0;
  const auto fits = [&](std::int64_t blocks) {
    strategy.recompute.blocks = blocks;
    return judge(scenario, strategy, recording, options).fits();
  };
  // More recomputed blocks never need more memory: the fewest that fit by bisection.
  std::int64_t low = 0, high = scenario.model.layers;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  strategy.recompute.blocks = low;
  return strategy;
}

}  // namespace zl
