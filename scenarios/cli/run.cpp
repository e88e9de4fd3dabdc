// `zerolab run`: every strategy of a scenario on every backend asked for, side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/log.h"
#include "results/run_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/experiment.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/cli/ratio_line.h"
#include "scenarios/cli/software_memory_table.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/stored_run.h"
#include "scenarios/run/strategy_bytes.h"

namespace zl::cli {
namespace {

struct RunOptions {
  ScenarioOptions scenario;
  DatabaseOptions database;
  RunHooks hooks;  // the checkpoint, the time-out, and whether to keep going
  std::string format = "table";
  bool require_fit = false;
};

// Where a sweep is: of so many runs.
struct Place {
  std::size_t at = 0, of = 1;
};

RunResult run_one(const Runner& runner, Experiment& experiment, const ImportedStrategy& strategy,
                  const std::string& backend, RunHooks hooks, Place place) {
  const RunSettings& settings = experiment.scenario().run;
  const std::string label = strategy.strategy.name + " on " + backend;
  const bool is_real = !runner.backends().capabilities(backend).is_recording;
  const std::string software = is_real ? "" : scenario_software(experiment.scenario());
  const std::string text =
      fmt::format("{}: {} ranks, {} steps, {}{}", label, settings.ranks, settings.steps,
                  name_of(strategy.strategy.precision.compute_dtype),
                  software.empty() ? "" : ", as fast as " + software);
  place.of > 1 ? log_debug(text) : log_info(text);
  ProgressBar bar(label, settings.steps);
  if (is_real) {
    hooks.on_step = [&](std::int64_t step, const StepMetrics& metrics, double seconds) {
      bar.clear();
      log_debug(
          fmt::format("{}: step {} loss {:.5f} {:.4f} s", label, step, metrics.loss, seconds));
      bar.update(step, fmt::format("loss {:.4f}", metrics.loss));
    };
  }
  RunResult result = experiment.run(strategy, backend, std::move(hooks));
  bar.clear();
  announce(result);
  return result;
}

// The results of one scenario.
struct Finished {
  std::string scenario;
  Environment environment;
  std::vector<RunResult> results;
  std::vector<SoftwareBytesOrWhy> software;  // of each result
};

// Keys that other software's bytes are known of come last; else the text is as it was.
std::string with_software(const std::string& text,
                          const std::vector<const SoftwareBytes*>& software) {
  const bool none = std::ranges::count(software, nullptr) == std::ssize(software);
  if (none) return text;
  Json object = Json::parse(text);
  for (std::size_t i = 0; i < software.size(); ++i) {
    if (software[i] == nullptr) continue;
    object["results"][i]["software_bytes"] = software_bytes_json(*software[i]);
  }
  return to_text(object);
}

// One object per scenario and backend, as the contract has it; several: an array of them.
std::string json_text(const std::vector<Finished>& all, const std::vector<std::string>& backends) {
  std::string text;
  for (const Finished& each : all) {
    for (const std::string& backend : backends) {
      std::vector<RunResult> of_backend;
      std::vector<const SoftwareBytes*> software;
      for (std::size_t i = 0; i < each.results.size(); ++i) {
        if (each.results[i].backend != backend) continue;
        of_backend.push_back(each.results[i]);
        const auto& bytes = each.software[i].bytes;
        software.push_back(bytes ? &*bytes : nullptr);
      }
      text +=
          (text.empty() ? "" : ",\n ") +
          with_software(run_json(each.scenario, backend, each.environment, of_backend), software);
    }
  }
  return (all.size() * backends.size() == 1 ? text : "[" + text + "]") + "\n";
}

std::string table_text(const std::vector<RunResult>& results, Format format) {
  if (format != Format::table) return render(wide_table(results), format);
  return fitted_text(summary_table(results), format);
}

std::string tables_text(const std::vector<RunResult>& results, Format format) {
  const std::string gap = format == Format::md ? "\n" : "";
  std::string text = setup_line(results) + "\n" + gap + table_text(results, format);
  for (const std::string& line : {ratio_line(results), basis_line(results)}) {
    if (!line.empty()) text += gap + line + "\n";
  }
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

// Every strategy of the experiment's scenario on every backend, in the order of the table.
std::vector<RunResult> run_all(const Runner& runner, Experiment& experiment,
                               const RunOptions& options, const std::vector<std::string>& backends,
                               Place place, ProgressBar& bar) {
  std::vector<RunResult> results;
  for (const ImportedStrategy& strategy : experiment.scenario().strategies) {
    for (const std::string& backend : in_order(backends, strategy.strategy, runner)) {
      if (experiment.interrupted()) break;
      bar.clear();
      results.push_back(run_one(runner, experiment, strategy, backend, options.hooks, place));
    }
  }
  bar.update_if_slow(static_cast<std::int64_t>(place.at) + 1);
  return results;
}

std::vector<SoftwareBytesOrWhy> software_of(const Scenario& scenario,
                                            const std::vector<RunResult>& results) {
  std::vector<SoftwareBytesOrWhy> all;
  for (const RunResult& run : results) {
    const auto strategy = std::ranges::find_if(
        scenario.strategies, [&](const auto& each) { return each.strategy.name == run.strategy; });
    const bool known = run.predicted && strategy != scenario.strategies.end();
    all.push_back(known ? software_bytes_or_why(scenario, strategy->strategy)
                        : SoftwareBytesOrWhy{});
  }
  return all;
}

// A strategy that is missing in the table below would else seem forgotten.
std::string unknown_bytes_text(const std::vector<Finished>& all) {
  std::map<std::string, std::string> names;  // by reason
  for (const Finished& each : all) {
    for (std::size_t i = 0; i < each.results.size(); ++i) {
      const std::string& why = each.software[i].why_not;
      if (!why.empty()) names[why] += (names[why].empty() ? "" : ", ") + each.results[i].strategy;
    }
  }
  std::string text;
  for (const auto& [why, named] : names) {
    text += "Not known of " + named + ": " + why + ".\n";
  }
  return text;
}

std::string software_bytes_text(const std::vector<Finished>& all, Format format) {
  std::vector<NamedBytes> rows;
  for (const Finished& each : all) {
    for (std::size_t i = 0; i < each.results.size(); ++i) {
      const RunResult& run = each.results[i];
      const auto& bytes = each.software[i].bytes;
      if (bytes) rows.push_back({run.strategy, run.device_capacity, *bytes});
    }
  }
  const std::string text = software_memory_text(rows, format);
  return text.empty() ? text : text + unknown_bytes_text(all);
}

void print_results(const std::vector<Finished>& all, const std::vector<std::string>& backends,
                   const std::vector<RunResult>& results, Format format) {
  if (format == Format::json) {
    print(json_text(all, backends));
  } else if (format == Format::csv) {
    print(render(flat_table(results), format));
  } else {
    print(tables_text(results, format) + software_bytes_text(all, format));
  }
}

// What is simulated beside a real run is this core, as that is.
void run_own_software(Scenario& scenario, const std::vector<std::string>& backends,
                      const Runner& runner) {
  const bool is_real = std::ranges::any_of(backends, [&runner](const std::string& backend) {
    return !runner.backends().capabilities(backend).is_recording;
  });
  if (is_real && scenario.run.software.empty()) scenario.run.software = kOwnSoftware;
}

// A checkpoint is of one run.
void check_sweep(const RunOptions& options, std::size_t scenarios) {
  if (scenarios < 2 || options.hooks.checkpoint.folder.empty()) return;
  throw Error(ErrorCode::usage, "--checkpoint: of one run; give every option one value");
}

int run(const RunOptions& options) {
  const Format format = parse_format(options.format);
  const Runner runner;
  std::vector<Scenario> scenarios = load_all(options.scenario);
  const std::vector<std::string> backends =
      choose_backends(options.scenario.backends, scenarios.front(), runner);
  for (std::size_t i = 1; i < scenarios.size(); ++i) check_backends(backends, scenarios[i], runner);
  for (Scenario& scenario : scenarios) run_own_software(scenario, backends, runner);
  check_checkpoint(runner, options.hooks.checkpoint, backends);
  check_sweep(options, scenarios.size());
  ProgressBar bar("combinations", static_cast<std::int64_t>(scenarios.size()));
  std::vector<Finished> all;
  std::vector<RunResult> results;
  Ending ending;
  for (std::size_t i = 0; i < scenarios.size() && !ending.interrupted; ++i) {
    Experiment experiment(runner, std::move(scenarios[i]), options.database, i == 0);
    Finished& done = all.emplace_back();
    done.results = run_all(runner, experiment, options, backends, {i, scenarios.size()}, bar);
    done.scenario = experiment.scenario().name;
    done.software = software_of(experiment.scenario(), done.results);
    done.environment = experiment.environment();
    results.insert(results.end(), done.results.begin(), done.results.end());
    experiment.add_to(ending);
  }
  bar.clear();
  print_results(all, backends, results, format);
  say_where(results, options.database);
  const std::string failure = failure_of_all(results);
  if (!failure.empty()) print_error(failure);
  return exit_code(ending, results, options.require_fit);
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
  sub->add_flag("--require-fit", options->require_fit,
                "Exit with 4 when any strategy does not fit, not only when none does");
  add_format(*sub, options->format, "table, wide (every column), md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace zl::cli
