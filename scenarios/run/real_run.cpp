#include "scenarios/run/real_run.h"

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/cpu/file_storage.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "results/environment.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/run/measure.h"
#include "scenarios/run/run_facts.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/training_data.h"
#include "scenarios/run/weights_file.h"

namespace zl {
namespace {

// One label a value: "strategy/zero_optimization/stage".
void add_labels(const std::string& root, const Json& object, Labels& labels) {
  const Json flat = object.flatten();
  for (const auto& [path, value] : flat.items()) {
    labels[root + path] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

// A run may be resumed by the same run only, but longer, elsewhere, or under another name, and with
// the same data under another name.
CheckpointConfig checkpoint_of(const Scenario& scenario, const Strategy& strategy,
                               const TokenSource& data, CheckpointConfig config) {
  if (config.folder.empty()) return config;
  config.folder = (std::filesystem::path(config.folder) / strategy.name).string();
  add_labels("model", model_to_json(scenario.model), config.identity);
  add_labels("strategy", strategy_to_json(strategy), config.identity);
  config.identity["seed"] = std::to_string(scenario.run.seed);
  config.identity["sequence_length"] = std::to_string(scenario.run.sequence_length);
  config.identity["data"] = data.fingerprint();
  config.identity[kProgram] = detect_environment().commit;
  return config;
}

// What a run needs besides its world, and what its ranks agree on.
struct Preparation {
  Strategy strategy;
  std::optional<TokenSource> data, validation;
  Statement statement;
};

// Threads of one process share what they run.
bool are_apart(const World& world) { return world.executed_ranks() < world.ranks(); }

void prepare(const World& world, const Scenario& scenario, const Resolve& resolve,
             const RunHooks& hooks, Preparation& made) {
  made.strategy = resolve();
  made.data = open_data(scenario, scenario.run.data);
  if (!hooks.validate_on.empty()) made.validation = open_data(scenario, hooks.validate_on);
  if (!are_apart(world)) return;
  made.statement.facts = run_facts(scenario, made.strategy, made.data->fingerprint(), hooks);
}

// Where ranks are processes a failure is for all of them.
Preparation prepare(const World& world, const Scenario& scenario, const Resolve& resolve,
                    const RunHooks& hooks) {
  Preparation made;
  try {
    prepare(world, scenario, resolve, hooks, made);
  } catch (...) {
    if (!are_apart(world)) throw;
    made.statement.failure = std::current_exception();
  }
  return made;
}

RankOutcome run_world(World& world, const Scenario& scenario, const Preparation& prepared,
                      const ProgramOptions& options) {
  RankOutcome first;
  world.run([&](RankHandle handle) {
    if (are_apart(world)) agree(handle, prepared.statement);
    RankOutcome outcome =
        run_rank(handle, scenario.model, prepared.strategy, *prepared.data, options);
    // A process of a launched job keeps its own.
    if (handle.communicator.rank() == 0 || world.executed_ranks() == 1) first = std::move(outcome);
  });
  return first;
}

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::invalid, what); }

void check_settings(const Scenario& scenario, const std::string& backend,
                    const BackendCapabilities& can) {
  const RunSettings& run = scenario.run;
  const bool processes = run.communicator == "mpi";
  if (!can.joins_launches && !processes) check_real_ranks(scenario, backend);
  if (processes && !can.takes_processes) {
    refuse("run.communicator: mpi is of the cpu backend, not of " + backend + "; remove it");
  }
  if (run.link_bandwidth > 0 && !can.takes_link_bandwidth) {
    refuse("run.link_bandwidth: the cpu backend and the simulator can be slowed, not " + backend +
           "; remove it");
  }
  if (!run.stack.empty()) {
    refuse("run.stack: \"" + run.stack + "\" is for simulated runs, not for " + backend +
           "; remove it, or use --backend sim");
  }
}

// The weights are there; that they cannot be written makes the run no less trained.
void save_weights(const WeightsFile& weights, const std::string& path, RunResult& result) {
  try {
    weights.write(path);
  } catch (const Error& error) {
    result.outcome = Outcome::failed;
    result.message = error.what();
  }
}

}  // namespace

std::unique_ptr<World> make_real_world(const BackendRegistry& registry, const Scenario& scenario,
                                       const std::string& backend, const RunHooks& hooks) {
  const RunSettings& run = scenario.run;
  check_settings(scenario, backend, registry.capabilities(backend));
  auto world = registry.make(backend, {.ranks = static_cast<int>(run.ranks),
                                       .deterministic = run.deterministic,
                                       .link_bandwidth = run.link_bandwidth,
                                       .communicator = run.communicator,
                                       .collective_timeout = hooks.collective_timeout});
  if (world->ranks() != run.ranks) {
    const std::string started = std::to_string(world->ranks());
    refuse("run.ranks: " + std::to_string(run.ranks) + " is not the " + started +
           " processes that were started; use --ranks " + started);
  }
  return world;
}

RunResult run_real(World& world, const Scenario& scenario, const Resolve& resolve,
                   const BackendCapabilities& backend, const RunHooks& hooks) {
  const Preparation prepared = prepare(world, scenario, resolve, hooks);
  const Strategy& strategy = prepared.strategy;
  WeightsFile weights(scenario.model.name, strategy.name);
  ProgramOptions options = program_options(scenario);
  options.pipeline = plan_pipeline(strategy.pipeline, strategy.gradient_accumulation);
  options.stop = hooks.stop;
  options.on_step = hooks.on_step;
  options.keep_going = hooks.keep_going;
  options.keep_trace = static_cast<bool>(hooks.on_trace);
  options.checkpoint = checkpoint_of(scenario, strategy, *prepared.data, hooks.checkpoint);
  options.make_storage = [timeout = hooks.collective_timeout](const Strategy& s, int rank) {
    return cpu::make_file_storage(s.offload.nvme_path, rank, s.offload.aio, timeout);
  };
  options.at_end = [&](Engine& engine) {
    if (!hooks.save_weights_to.empty()) weights.collect(engine);
    if (!prepared.validation) return;
    const double loss = validation_loss(engine, *prepared.validation, scenario.run.sequence_length);
    if (engine.context().rank() == 0 && hooks.on_validated) hooks.on_validated(loss);
  };
  RankOutcome outcome = run_world(world, scenario, prepared, options);
  RunResult& result = outcome.result;
  write_measured_times(outcome.trace, result);
  const DType dtype = strategy.precision.compute_dtype;
  write_rates(scenario, strategy, backend.peak_flops ? backend.peak_flops(world.ranks(), dtype) : 0,
              result);
  if (hooks.on_trace) hooks.on_trace(outcome.trace);
  const bool worth = result.outcome == Outcome::ok && result.steps > 0;
  if (weights.holds_any() && worth) save_weights(weights, hooks.save_weights_to, result);
  return std::move(result);
}

}  // namespace zl
