// `zerolab run`: every strategy of a scenario on every backend asked for, side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "core/base/log.h"
#include "results/run_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/experiment.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/run/stored_run.h"

namespace zl::cli {
namespace {

struct RunOptions {
  ScenarioOptions scenario;
  DatabaseOptions database;
  RunHooks hooks;  // the checkpoint, the time-out, and whether to keep going
  std::string format = "table";
};

// `real`: what real runs of the scenario gave so far.
RunResult run_one(const Runner& runner, Experiment& experiment, const ImportedStrategy& strategy,
                  const std::string& backend, RunHooks hooks, const std::vector<RunResult>& real) {
  const RunSettings& settings = experiment.scenario().run;
  const std::string label = strategy.strategy.name + " on " + backend;
  log_info(fmt::format("{}: {} ranks, {} steps, {}{}", label, settings.ranks, settings.steps,
                       name_of(strategy.strategy.precision.compute_dtype),
                       settings.stack.empty() ? "" : ", as fast as " + settings.stack));
  ProgressBar bar(label, settings.steps);
  if (!runner.backends().capabilities(backend).is_recording) {
    hooks.on_step = [&](std::int64_t step, const StepMetrics& metrics, double seconds) {
      bar.clear();
      log_debug(
          fmt::format("{}: step {} loss {:.5f} {:.4f} s", label, step, metrics.loss, seconds));
      bar.update(step, fmt::format("loss {:.4f}", metrics.loss));
    };
  } else {
    const auto twin = std::find_if(real.rbegin(), real.rend(), [&](const RunResult& each) {
      return !each.predicted && each.strategy == strategy.strategy.name;
    });
    if (twin != real.rend()) hooks.overflows = overflowed_steps(*twin);
  }
  RunResult result = experiment.run(strategy, backend, std::move(hooks));
  bar.clear();
  announce(result);
  return result;
}

// One object per backend, as the contract has it; several backends: an array of them.
std::string json_text(const Experiment& experiment, const std::vector<std::string>& backends,
                      const std::vector<RunResult>& results) {
  std::string text;
  for (const std::string& backend : backends) {
    std::vector<RunResult> of_backend;
    for (const RunResult& run : results) {
      if (run.backend == backend) of_backend.push_back(run);
    }
    text += (text.empty() ? "" : ",\n ") +
            run_json(experiment.scenario().name, backend, experiment.environment(), of_backend);
  }
  return (backends.size() == 1 ? text : "[" + text + "]") + "\n";
}

std::string tables_text(const std::vector<RunResult>& results, Format format) {
  std::string text = render(summary_table(results), format);
  const Table predictions = prediction_table(results);
  if (!predictions.rows.empty()) {
    text += "\nPredicted against measured step time:\n";
    if (format == Format::md) text += "\n";
    text += render(predictions, format);
  }
  return text;
}

void say_where(const std::vector<RunResult>& results, const DatabaseOptions& database) {
  std::string ids;
  for (const RunResult& run : results) {
    if (run.run_id != 0) ids += (ids.empty() ? "" : ", ") + std::to_string(run.run_id);
  }
  if (ids.empty()) return;
  const char* runs = ids.find(',') == std::string::npos ? "run " : "runs ";
  log_info(std::string("stored as ") + runs + ids + " in " + database.path().string());
}

// The second of two real backends would find the checkpoints of the first.
void check_checkpoint(const Runner& runner, const CheckpointConfig& checkpoint,
                      const std::vector<std::string>& backends) {
  const auto real =
      std::count_if(backends.begin(), backends.end(), [&runner](const std::string& backend) {
        return !runner.backends().capabilities(backend).is_recording;
      });
  if (checkpoint.folder.empty() || real < 2) return;
  throw Error(ErrorCode::usage,
              "--checkpoint: a folder is of one real backend; run them one after the other, each "
              "with its own folder");
}

// As asked for, but a recording of fp16 after real runs: it follows what they skipped.
std::vector<std::string> in_order(std::vector<std::string> backends, const Strategy& strategy,
                                  const Runner& runner) {
  if (strategy.precision.compute_dtype == DType::f16) {
    std::stable_partition(backends.begin(), backends.end(), [&](const std::string& backend) {
      return !runner.backends().capabilities(backend).is_recording;
    });
  }
  return backends;
}

int run(const RunOptions& options) {
  const Format format = parse_format(options.format);
  const Runner runner;
  Scenario scenario = load(options.scenario);
  const std::vector<std::string> backends =
      choose_backends(options.scenario.backends, scenario, runner);
  check_checkpoint(runner, options.hooks.checkpoint, backends);
  Experiment experiment(runner, std::move(scenario), options.database);
  std::vector<RunResult> results;
  for (const ImportedStrategy& strategy : experiment.scenario().strategies) {
    for (const std::string& backend : in_order(backends, strategy.strategy, runner)) {
      if (experiment.interrupted()) break;
      results.push_back(run_one(runner, experiment, strategy, backend, options.hooks, results));
    }
  }
  if (format == Format::json) {
    print(json_text(experiment, backends, results));
  } else if (format == Format::csv) {
    print(render(flat_table(results), format));
  } else {
    print(tables_text(results, format));
  }
  say_where(results, options.database);
  const std::string failure = failure_of_all(results);
  if (!failure.empty()) print_error(failure);
  return experiment.exit_code(results);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("run", "Run a scenario's strategies and compare them");
  const auto options = std::make_shared<RunOptions>();
  add_scenario_options(*sub, options->scenario);
  add_database_options(*sub, options->database);
  add_checkpoint(*sub, options->hooks.checkpoint);
  add_collective_timeout(*sub, options->hooks.collective_timeout);
  add_keep_going(*sub, options->hooks.keep_going);
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace zl::cli
