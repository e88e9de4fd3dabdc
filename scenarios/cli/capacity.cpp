// `zerolab capacity`: how deep a model each strategy of a scenario can train in the memory there
// is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/log.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/run/largest.h"

namespace zl::cli {
namespace {

struct CapacityOptions {
  ScenarioOptions scenario;
  std::string format = "table";
  bool train = false;
};

struct Planned {
  std::string strategy;
  LargestFit fit;
  std::optional<RunResult> trained, one_deeper;  // on the CPU
};

RunResult train(const Runner& runner, const Scenario& scenario, const ImportedStrategy& strategy,
                std::int64_t layers) {
  const std::string label = fmt::format("{} with {} layers", strategy.strategy.name, layers);
  log_info(label + " on cpu");
  const Scenario deeper = with_layers(scenario, layers);
  ProgressBar bar(label, deeper.run.steps);
  RunHooks hooks;
  hooks.on_step = [&](std::int64_t step, const StepMetrics& metrics, double) {
    bar.update(step, fmt::format("loss {:.4f}", metrics.loss));
  };
  RunResult result = runner.run(deeper, strategy, "cpu", hooks);
  bar.clear();
  return result;
}

Cell bytes(const TaggedBytes& tags) { return tags.total() > 0 ? Cell(tags.total()) : Cell(); }

Table table_of(const std::vector<Planned>& plans) {
  Table table{{{"strategy", Align::left},
               {"layers"},
               {"parameters"},
               {"times the first"},
               {"device memory", Align::right, Unit::bytes},
               {"host memory", Align::right, Unit::bytes},
               {"files", Align::right, Unit::bytes}},
              {}};
  const bool trained = plans.front().trained.has_value();
  if (trained) {
    table.columns.push_back({"trained: loss"});
    table.columns.push_back({"device memory (trained)", Align::right, Unit::bytes});
    table.columns.push_back({"one layer more", Align::left});
  }
  for (const Planned& plan : plans) {
    const LargestFit& fit = plan.fit;
    auto& row = table.rows.emplace_back();
    row = {plan.strategy, fit.layers, fit.parameters};
    const auto first = static_cast<double>(plans.front().fit.parameters);
    row.push_back(first > 0 ? Cell(static_cast<double>(fit.parameters) / first) : Cell());
    for (const auto* tags : {&fit.books.peak_device, &fit.books.peak_host, &fit.books.peak_nvme}) {
      row.push_back(bytes(*tags));
    }
    if (!trained) continue;
    row.push_back(plan.trained->loss.empty() ? Cell() : Cell(plan.trained->loss.back()));
    row.push_back(bytes(plan.trained->peak_device));
    row.emplace_back(
        std::string(plan.one_deeper ? name_of(plan.one_deeper->outcome) : "not tried"));
  }
  return table;
}

int run(const CapacityOptions& options) {
  const Format format = parse_format(options.format);
  const Runner runner;
  const Scenario scenario = load(options.scenario);
  std::vector<Planned> plans;
  for (const ImportedStrategy& strategy : scenario.strategies) {
    Planned& plan = plans.emplace_back();
    plan.strategy = strategy.strategy.name;
    plan.fit = largest_fit(runner, scenario, strategy);
    if (!plan.fit.limited) {
      log_info(
          fmt::format("{}: {} layers fit, the most that is tried", plan.strategy, kMostLayers));
    }
    if (!options.train) continue;
    plan.trained = train(runner, scenario, strategy, plan.fit.layers);
    if (plan.fit.limited) {
      plan.one_deeper = train(runner, scenario, strategy, plan.fit.layers + 1);
    }
  }
  print(render(table_of(plans), format));
  return 0;
}

}  // namespace

void add_capacity(CLI::App& app, Action& action) {
  auto options = std::make_shared<CapacityOptions>();
  CLI::App* capacity = app.add_subcommand(
      "capacity",
      "The deepest model that each strategy fits into --device-memory and --host-memory");
  add_scenario_options(*capacity, options->scenario);
  capacity->add_flag("--train", options->train,
                     "Also train each for real on the CPU for two steps, and try one layer more");
  add_format(*capacity, options->format, "table, md, csv, json");
  add_verbosity(*capacity);
  capacity->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace zl::cli
