#include "scenarios/run/real_run.h"

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>

#include "backends/cpu/file_storage.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/threads/file_watchdog.h"
#include "results/environment.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/measure.h"
#include "scenarios/run/run_facts.h"
#include "scenarios/run/run_identity.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/training_data.h"
#include "scenarios/run/weights_file.h"
#include "scenarios/weights/model_weights.h"
#include "scenarios/weights/save_model.h"

namespace zl {
namespace {

// A run may be resumed by the same run only, but longer, elsewhere, or under another name, with its
// files in another folder, and with the same data under another name.
CheckpointConfig checkpoint_of(const Scenario& scenario, const Strategy& strategy,
                               const std::optional<TrainingData>& data, CheckpointConfig config) {
  if (config.folder.empty() || !data) return config;
  config.folder = (std::filesystem::path(config.folder) / strategy.name).string();
  config.identity = identity_of(scenario.model, strategy);
  config.identity["seed"] = std::to_string(scenario.run.seed);
  config.identity["sequence_length"] = std::to_string(scenario.run.sequence_length);
  config.identity["data"] = data->fingerprint;
  config.identity[kProgram] = detect_environment().commit;
  return config;
}

// What a run needs besides its world, and what its ranks agree on.
struct Preparation {
  Strategy strategy;
  std::optional<TrainingData> data;  // none where this rank cannot begin, which all will say
  EvaluationData evaluation;
  std::shared_ptr<const ModelWeights> weights;  // null: drawn
  Statement statement;
};

// Threads of one process share what they run.
bool are_apart(const World& world) { return world.executed_ranks() < world.ranks(); }

void prepare(const World& world, const Scenario& scenario, const Resolve& resolve,
             const RunHooks& hooks, Preparation& made) {
  made.strategy = resolve();
  // First: where its files lack a part, others that do not fit the model are no surprise.
  if (const std::string& folder = scenario.run.weights; !folder.empty()) {
    made.weights = std::make_shared<ModelWeights>(folder, scenario.model);
  }
  made.data = open_data(scenario);
  made.evaluation = open_evaluation(scenario, &*made.data);
  if (!are_apart(world)) return;
  const Fingerprints read{made.data->fingerprint, made.evaluation.fingerprint,
                          made.weights == nullptr ? "" : made.weights->fingerprint()};
  made.statement.facts = run_facts(scenario, made.strategy, read, hooks);
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
        run_rank(handle, scenario.model, prepared.strategy, *prepared.data->source, options);
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
  if (!run.software.empty() && run.software != kOwnSoftware) {
    refuse("run.software: \"" + run.software + "\" is for simulated runs, not for " + backend +
           "; remove it, or use --backend sim");
  }
}

// The weights that a run leaves, on rank 0, as a file or as a folder. That they cannot be written
// makes the run no less trained.
class SavedWeights {
 public:
  SavedWeights(const Scenario& scenario, const Preparation& prepared, const RunHooks& hooks)
      : scenario_(scenario),
        hooks_(hooks),
        sparse_(prepared.strategy.sparse_attention),
        file_(scenario.model.name, prepared.strategy.name) {
    const TextLines* lines = prepared.data ? prepared.data->lines.get() : nullptr;
    if (lines != nullptr && !lines->numbered) labels_ = lines->labels;
  }

  // What the engine has now, in place of what was collected before.
  void collect(Engine& engine) {
    if (hooks_.save_weights_to.empty()) return;
    if (is_weights_file(hooks_.save_weights_to)) return file_.collect(engine);
    if (engine.context().rank() == 0) {
      folder_.reset();
      folder_ = std::make_unique<SavedModel>(hooks_.save_weights_to, scenario_.model,
                                             SaveModelOptions{.source = scenario_.run.weights,
                                                              .dtype = hooks_.save_dtype,
                                                              .labels = labels_,
                                                              .sparse = sparse_});
    }
    engine.gather_model([this](const ParameterSpec& spec, const std::vector<float>& values) {
      folder_->take(spec, values);
    });
  }

  // Of a run whose evaluations were none better than `best`, before it was resumed: for the case
  // that nothing was saved then.
  void collect_after(Engine& engine, const EvaluationPoint& best) {
    collect(engine);
    if (engine.context().rank() == 0) older_ = best;
  }

  void write(RunResult& result) {
    if (result.outcome != Outcome::ok || result.first_step + result.steps == 0) return;
    if (stays(result)) return;
    if (file_.holds_any() && sparse_.is_sparse()) {
      result.warnings.push_back(hooks_.save_weights_to +
                                ": a file of weights does not say that attention was sparse; a "
                                "folder (--save DIR) does");
    }
    try {
      if (file_.holds_any()) file_.write(hooks_.save_weights_to);
      if (folder_ != nullptr) folder_->commit();
    } catch (const Error& error) {
      result.outcome = Outcome::failed;
      result.message = error.what();
    }
  }

 private:
  // Whether what was saved before the run was resumed is better than what it has.
  bool stays(RunResult& result) const {
    if (!older_ || hooks_.save_weights_to.empty()) return false;
    const bool is_there = std::filesystem::exists(hooks_.save_weights_to);
    result.warnings.push_back(
        "no evaluation was better than the loss " + std::to_string(older_->loss) + " after step " +
        std::to_string(older_->step) + ", before the run was resumed; " + hooks_.save_weights_to +
        (is_there ? " stays as it is" : " was not there and gets the weights after the last step"));
    return is_there;
  }

  const Scenario& scenario_;
  const RunHooks& hooks_;
  const SparseAttentionConfig& sparse_;
  WeightsFile file_;
  std::optional<EvaluationPoint> older_;  // on rank 0: the best, of before the run
  std::vector<std::string> labels_;       // names, by number; empty: the data has none
  std::unique_ptr<SavedModel> folder_;
};

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
  const FileWatchdog watchdog(hooks.collective_timeout);
  const Preparation prepared = prepare(world, scenario, resolve, hooks);
  const Strategy& strategy = prepared.strategy;
  world.expect_all_at_work(strategy.pipeline.ranks == 1);
  SavedWeights weights(scenario, prepared, hooks);
  ProgramOptions options = program_options(scenario);
  options.weights = prepared.weights;
  options.pipeline = plan_pipeline(strategy.pipeline, strategy.gradient_accumulation);
  options.stop = hooks.stop;
  options.enough = hooks.enough;
  options.on_step = hooks.on_step;
  options.keep_going = hooks.keep_going;
  options.keep_trace = static_cast<bool>(hooks.on_trace);
  options.held_rounds = kTimedRounds;
  options.checkpoint = checkpoint_of(scenario, strategy, prepared.data, hooks.checkpoint);
  options.make_storage = [timeout = hooks.collective_timeout](const Strategy& s, int rank) {
    return cpu::make_file_storage(s.offload.nvme_path, rank, s.offload.aio, timeout);
  };
  LabelScores scores;
  options.evaluation = {
      prepared.evaluation.source, prepared.evaluation.fingerprint, scenario.run.eval_every,
      [&](Engine& engine, const EvaluationPoint& point, bool is_best) {
        const bool is_first = engine.context().rank() == 0;
        if (is_best) weights.collect(engine);
        if (is_best && prepared.evaluation.texts.labelled != nullptr &&
            prepared.data->lines != nullptr) {
          const LabelScores told = judge_labels(engine, *prepared.data, prepared.evaluation.texts,
                                                scenario.run.sequence_length);
          if (is_first) scores = told;
        }
        if (is_first && hooks.on_evaluation) hooks.on_evaluation(point, is_best);
      },
      [&](Engine& engine, const EvaluationPoint& best) { weights.collect_after(engine, best); }};
  options.at_end = [&](Engine& engine) {
    if (prepared.evaluation.source == nullptr) weights.collect(engine);
  };
  RankOutcome outcome = run_world(world, scenario, prepared, options);
  RunResult& result = outcome.result;
  result.labels = scores;
  if (prepared.weights != nullptr && !prepared.weights->missing().empty()) {
    result.warnings.push_back("drawn by the seed, since " + scenario.run.weights +
                              " has none: " + join(prepared.weights->missing(), ", "));
  }
  write_measured_times(outcome.trace, result);
  const DType dtype = strategy.precision.compute_dtype;
  write_rates(scenario, strategy, backend.peak_flops ? backend.peak_flops(world.ranks(), dtype) : 0,
              result);
  if (hooks.on_trace) hooks.on_trace(outcome.trace);
  weights.write(result);
  return std::move(result);
}

}  // namespace zl
