// `zerolab export`: what a strategy does over time, for the viewers that people have.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>

#include "core/base/error.h"
#include "core/base/log.h"
#include "results/memory_snapshot.h"
#include "results/perfetto.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/run/trace_run.h"

namespace zl::cli {
namespace {

struct ExportOptions {
  ScenarioOptions scenario;
  std::string perfetto, snapshot;
};

void write_perfetto(const std::vector<TimedTrace>& traces, const std::string& file) {
  std::vector<NamedTrace> named;
  for (const TimedTrace& each : traces) named.push_back(each.named());
  write_file(file, perfetto_json(named));
  log_info("wrote " + file + "; open it at https://ui.perfetto.dev");
}

void check(const ExportOptions& options, const Scenario& scenario,
           const std::vector<std::string>& backends) {
  if (options.perfetto.empty() && options.snapshot.empty()) {
    throw Error(ErrorCode::usage,
                "nothing to export: give --perfetto FILE or --memory-snapshot FILE");
  }
  if (backends.size() != 1) {
    throw Error(ErrorCode::usage, "--backend: one at a time can be exported");
  }
  if (!options.snapshot.empty() && scenario.strategies.size() != 1) {
    std::string names;
    for (const ImportedStrategy& each : scenario.strategies) {
      names += (names.empty() ? "" : ", ") + each.strategy.name;
    }
    throw Error(ErrorCode::usage,
                "--memory-snapshot: holds one strategy; choose it with --strategy: " + names);
  }
}

int export_traces(const ExportOptions& options) {
  const Runner runner;
  const Scenario scenario = load(options.scenario);
  const std::vector<std::string> given = options.scenario.backends.empty()
                                             ? std::vector<std::string>{"sim"}
                                             : options.scenario.backends;
  const std::vector<std::string> backends = choose_backends(given, scenario, runner);
  check(options, scenario, backends);
  std::vector<TimedTrace> traces;
  for (const ImportedStrategy& imported : scenario.strategies) {
    std::ranges::move(trace_run(runner, scenario, imported, backends[0]),
                      std::back_inserter(traces));
  }
  if (!options.perfetto.empty()) write_perfetto(traces, options.perfetto);
  if (!options.snapshot.empty()) {
    std::vector<const Trace*> ranks;  // of the one strategy
    for (const TimedTrace& each : traces) ranks.push_back(&each.trace);
    write_file(options.snapshot, memory_snapshot(ranks));
    log_info("wrote " + options.snapshot + "; open it at https://pytorch.org/memory_viz");
  }
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("export", "What strategies do over time, for other viewers");
  const auto options = std::make_shared<ExportOptions>();
  add_scenario_options(*sub, options->scenario);
  sub->add_option("--perfetto", options->perfetto, "Trace of all strategies for ui.perfetto.dev");
  sub->add_option("--memory-snapshot", options->snapshot,
                  "Device memory of one strategy for pytorch.org/memory_viz");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return export_traces(*options); }; });
}

}  // namespace zl::cli
