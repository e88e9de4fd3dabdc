#include "scenarios/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "backends/bootstrap/launch.h"
#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "results/paths.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/defaults.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/planner/grid.h"

namespace zl::cli {
namespace {

void add_run_option(CLI::App& app, ScenarioOptions& options, const RunKey& key,
                    std::optional<std::int64_t> RunOverrides::*member, run_value::Whole rule) {
  const std::string name = option_of(key);
  add_swept(app, options, name, key.help,
            [name, member, rule](const std::string& text, ScenarioOverrides& overrides) {
              try {
                overrides.*member = parse_count(text, rule.kilo);
              } catch (const Error& error) {
                throw Error(ErrorCode::usage, name + ": " + error.what());
              }
            });
}
void add_run_option(CLI::App& app, ScenarioOptions& options, const RunKey& key,
                    std::optional<bool> RunOverrides::*member, run_value::Flag) {
  const std::string option = option_of(key);
  // As a variable the flag would be set to false by nobody saying anything.
  app.add_flag_function(
      option + ",!--no-" + option.substr(2),
      [&options, member](std::int64_t said) { options.overrides.*member = said > 0; }, key.help);
}
// Paths may hold commas.
void add_run_option(CLI::App& app, ScenarioOptions& options, const RunKey& key,
                    std::optional<std::string> RunOverrides::*member, run_value::Text) {
  if (member == &RunOverrides::software) {
    return add_swept(
        app, options, option_of(key), key.help,
        [](const std::string& text, ScenarioOverrides& overrides) { overrides.software = text; });
  }
  app.add_option(option_of(key), options.overrides.*member, key.help);
}
void add_run_option(CLI::App& app, ScenarioOptions& options, const RunKey& key,
                    std::optional<std::string> RunOverrides::*member, auto) {
  add_swept(app, options, option_of(key), key.help,
            [member](const std::string& text, ScenarioOverrides& overrides) {
              overrides.*member = text;
            });
}

// Who runs something else should know whose speed is shown.
std::string whose_speed(const Scenario& scenario) {
  const std::string software = scenario_software(scenario);
  if (software.empty()) return "";
  const bool said = !scenario.run.software.empty();
  return ", as fast as " + software + (said ? "" : " (--software: another, or zerolab)");
}

}  // namespace

bool DatabaseOptions::is_used() const {
  const auto& launch = this_launch();
  return !off && !(launch && launch->rank > 0);
}

std::filesystem::path DatabaseOptions::path() const {
  if (file.empty()) return database_path();
  std::filesystem::path path(file);
  const std::filesystem::path folder = path.parent_path();
  std::error_code status;
  if (!folder.empty() && !std::filesystem::is_directory(folder, status)) {
    throw Error(ErrorCode::failed, "--db: " + shortened(file) + ": there is no folder " +
                                       shortened(folder.string()) + "; make it, or name another");
  }
  return path;
}

void add_scenario_options(CLI::App& app, ScenarioOptions& options) {
  ScenarioOverrides& o = options.overrides;
  app.add_option("scenario", options.scenario, "Study, model or scenario file; see zerolab show");
  add_swept(app, options, "--model", "Model of the catalogue, model file or folder of one",
            [](const std::string& text, ScenarioOverrides& into) { into.model = text; });
  add_swept(app, options, "--cluster", "Cluster: local, h200, 8xh100, ... or a file",
            [](const std::string& text, ScenarioOverrides& into) { into.cluster = text; });
  app.add_option("--strategy", o.strategies, "Strategies or DeepSpeed files, separated by commas")
      ->delimiter(',');
  add_edits(app, options);
  app.add_option("--backend", options.backends, "cpu, cuda or sim, or several: cpu,sim")
      ->delimiter(',');
  visit_run_keys([&](const RunKey& key, auto, auto given, auto rule) {
    add_run_option(app, options, key, given, rule);
  });
}

void add_database_options(CLI::App& app, DatabaseOptions& options) {
  CLI::Option* file = app.add_option("--db", options.file, "Result database (see zerolab paths)");
  CLI::Option* off = app.add_flag("--no-db", options.off, "Do not store the runs")->excludes(file);
  app.add_option("--tag", options.tags, "Words to find the stored runs by (zerolab runs --tag)")
      ->delimiter(',')
      ->excludes(off);
}

void add_checkpoint(CLI::App& app, CheckpointConfig& checkpoint) {
  CLI::Option* folder =
      app.add_option("--checkpoint", checkpoint.folder,
                     "Keep the state of real runs in this folder, after the last step and when "
                     "interrupted");
  app.add_option("--checkpoint-every", checkpoint.every, "And every so many steps")
      ->check(CLI::Range(std::int64_t{1}, kMaxCount))
      ->needs(folder);
  app.add_flag("--resume", checkpoint.resume, "Go on from the newest checkpoint, if there is one")
      ->needs(folder);
}

void add_collective_timeout(CLI::App& app, std::chrono::milliseconds& timeout) {
  app.add_option_function<std::int64_t>(
         "--collective-timeout",
         [&timeout](std::int64_t seconds) { timeout = std::chrono::seconds(seconds); },
         "End a real run, naming who is missing, when a rank has waited so many seconds for others "
         "(60; 0: never)")
      ->check(CLI::Range(std::int64_t{0}, kMaxCount));
}

void add_keep_going(CLI::App& app, bool& keep_going) {
  app.add_flag("--keep-going", keep_going,
               "Take all steps although a loss is not finite; else the run ends there, failed");
}

void add_format(CLI::App& app, std::string& format, const std::string& accepted) {
  app.add_option("-o,--format", format, "Output: " + accepted)->capture_default_str();
}

void add_verbosity(CLI::App& app) {
  app.add_flag_callback(
      "-q,--quiet", [] { set_log_level(LogLevel::quiet); }, "No messages but errors");
  app.add_flag_callback(
      "-v,--verbose", [] { set_log_level(LogLevel::debug); }, "More messages");
}

namespace {

Scenario load_one(const std::string& scenario, ScenarioOverrides overrides) {
  if (scenario.empty() && !overrides.model) {
    throw Error(ErrorCode::usage,
                "no scenario: name a study, a model or a file, such as `zerolab run demo`, or give "
                "--model");
  }
  const auto& launch = this_launch();
  if (launch && !overrides.ranks) overrides.ranks = launch->ranks;
  return load_scenario(scenario, overrides);
}

}  // namespace

Scenario load(const ScenarioOptions& options) {
  if (!options.sweeps.empty()) {
    throw Error(ErrorCode::usage,
                options.sweeps.front().option + ": several values are for `zerolab run`; give one");
  }
  return load_one(options.scenario, options.overrides);
}

std::vector<Scenario> load_all(const ScenarioOptions& options) {
  std::vector<ScenarioOverrides> points{options.overrides};
  for (const Sweep& sweep : options.sweeps) {
    std::vector<ScenarioOverrides> longer;
    for (const ScenarioOverrides& before : points) {
      for (const std::string& value : sweep.values) {
        sweep.set(value, longer.emplace_back(before));
      }
    }
    points = std::move(longer);
    if (points.size() > kMostCombinations) {
      throw Error(ErrorCode::usage, sweep.option + ": more than " +
                                        std::to_string(kMostCombinations) +
                                        " combinations of values; leave some out");
    }
  }
  std::vector<Scenario> scenarios;
  for (ScenarioOverrides& each : points) {
    scenarios.push_back(load_one(options.scenario, std::move(each)));
  }
  return scenarios;
}

void require_backend(const Runner& runner, const std::string& backend) {
  runner.backends().make(backend, {.ranks = 1, .threads_per_rank = 1});
}

namespace {

void check_backend(const std::string& backend, const Scenario& scenario, const Runner& runner) {
  require_backend(runner, backend);
  const BackendCapabilities& can = runner.backends().capabilities(backend);
  const auto& launch = this_launch();
  const bool by_processes = can.joins_launches || scenario.run.communicator == "mpi";
  if (launch && !can.is_recording && !by_processes) {
    throw Error(ErrorCode::usage, "--backend " + backend + ": this process is one of " +
                                      std::to_string(launch->ranks) + " that " + launch->launcher +
                                      " started, and would start all ranks as threads; add "
                                      "--communicator mpi, or start it alone");
  }
  if (!can.is_recording && !(launch && by_processes)) check_real_ranks(scenario, backend);
  const bool guessed = can.is_recording && scenario.cluster == "local" &&
                       scenario.cluster_json.empty() &&
                       !std::filesystem::exists(local_cluster_path());
  if (guessed) {
    log_warning(
        "this machine is not calibrated: simulated times are guesses; run `zerolab calibrate`");
  }
}

}  // namespace

std::vector<std::string> choose_backends(const std::vector<std::string>& given,
                                         const Scenario& scenario, const Runner& runner) {
  std::vector<std::string> backends;
  for (const std::string& backend : given) {
    if (std::find(backends.begin(), backends.end(), backend) == backends.end()) {
      backends.push_back(backend);
    }
  }
  if (backends.empty()) {
    const bool local = scenario.cluster == "local";
    backends = {local ? "cpu" : "sim"};
    if (!local) {
      log_info("cluster " + scenario.cluster + " is not this machine: simulating (--backend sim)" +
               whose_speed(scenario));
    }
  }
  check_backends(backends, scenario, runner);
  return backends;
}

void check_backends(const std::vector<std::string>& backends, const Scenario& scenario,
                    const Runner& runner) {
  for (const std::string& backend : backends) check_backend(backend, scenario, runner);
  const std::int64_t devices = devices_in_name(scenario), ranks = scenario.run.ranks;
  if (ranks < devices) {
    log_warning(std::to_string(ranks) + " of the " + std::to_string(devices) + " GPUs of " +
                scenario.cluster + " are used; --ranks " + std::to_string(devices) +
                " takes all of them");
  }
}

Format table_or_json(const std::string& format) {
  const Format parsed = parse_format(format);
  if (parsed != Format::table && parsed != Format::json) {
    throw Error(ErrorCode::usage, "-o: \"" + format + "\" is not one of table, json");
  }
  return parsed;
}

}  // namespace zl::cli
