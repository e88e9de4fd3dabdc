// `zerolab tune`: which learning rate, batch and warm-up train best, by training with them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "results/run_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/experiment.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/run/learning_rate.h"
#include "scenarios/run/pruner.h"

namespace zl::cli {
namespace {

constexpr std::int64_t kFinderSteps = 100;

struct TuneOptions {
  ScenarioOptions scenario;
  DatabaseOptions database;
  std::string format = "table";
  bool find_lr = false;
  double lr_from = 1e-7, lr_to = 1;
  std::int64_t startup = 2;
};

std::string real_backend(const TuneOptions& options, const Scenario& scenario,
                         const Runner& runner) {
  const auto backends = choose_backends(options.scenario.backends, scenario, runner);
  if (backends.size() == 1 && !runner.backends().capabilities(backends.front()).is_recording) {
    return backends.front();
  }
  throw Error(ErrorCode::usage, "--backend: give cpu or cuda; the simulator has no loss");
}

void require_one_strategy(const Scenario& scenario) {
  if (scenario.strategies.size() == 1) return;
  throw Error(ErrorCode::usage,
              "--strategy: give one; what is tuned for it holds for the others, too");
}

// ---- the learning-rate finder

Scenario finder_scenario(const TuneOptions& options) {
  ScenarioOptions one = options.scenario;
  ScenarioOverrides& overrides = one.overrides;
  if (!(options.lr_from > 0 && options.lr_to > options.lr_from)) {
    throw Error(ErrorCode::usage,
                fmt::format("--lr-from: {:g} is not above 0 and below --lr-to {:g}",
                            options.lr_from, options.lr_to));
  }
  const std::int64_t steps = overrides.steps.value_or(kFinderSteps);
  overrides.steps = std::max<std::int64_t>(2, steps);
  overrides.edits.lr = options.lr_from;
  overrides.edits.lr_growth =
      std::pow(options.lr_to / options.lr_from, 1 / static_cast<double>(*overrides.steps - 1));
  if (overrides.strategies.empty()) overrides.strategies = {"zero-0"};
  Scenario scenario = load(one);
  require_one_strategy(scenario);
  return scenario;
}

// So many lines of it as a screen has.
Table curve_table(const LearningRateCurve& curve) {
  constexpr std::size_t kLines = 24;
  Table table{{{"learning rate"}, {"loss"}, {"smoothed"}}, {}};
  const std::size_t count = curve.rates().size(), lines = std::min(count, kLines);
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t i = line * (count - 1) / std::max<std::size_t>(1, lines - 1);
    table.rows.push_back({fmt::format("{:.3e}", curve.rates()[i]),
                          fmt::format("{:.4f}", curve.losses()[i]),
                          fmt::format("{:.4f}", curve.smoothed()[i])});
  }
  return table;
}

Json curve_json(const LearningRateCurve& curve, const RunResult& run) {
  const auto suggestion = curve.suggestion();
  return {{"run_id", run.run_id ? Json(run.run_id) : Json()},
          {"learning_rate", curve.rates()},
          {"loss", curve.losses()},
          {"smoothed", curve.smoothed()},
          {"diverged", curve.has_diverged()},
          {"steepest", suggestion ? Json(suggestion->steepest) : Json()},
          {"below_minimum", suggestion ? Json(suggestion->below_minimum) : Json()}};
}

void print_curve(const LearningRateCurve& curve, const RunResult& run) {
  print(render(curve_table(curve), Format::table));
  const auto suggestion = curve.suggestion();
  if (!suggestion) {
    print("The loss falls at none of these rates: train longer (--steps), or begin lower.\n");
    return;
  }
  print(
      fmt::format("The loss falls fastest at {:.2e}; a tenth of the rate where it is lowest is "
                  "{:.2e}: try --lr {:.1e}{}\n",
                  suggestion->steepest, suggestion->below_minimum, suggestion->steepest,
                  run.run_id ? fmt::format("; stored as run {}", run.run_id) : ""));
}

int find_lr(const TuneOptions& options) {
  const Format format = table_or_json(options.format);
  const Runner runner;
  Scenario scenario = finder_scenario(options);
  const std::string backend = real_backend(options, scenario, runner);
  Experiment experiment(runner, std::move(scenario), options.database, false);
  ProgressBar bar("learning rates", experiment.scenario().run.steps);
  LearningRateCurve curve;
  std::atomic<bool> enough{false};
  RunHooks hooks{.on_step =
                     [&](std::int64_t step, const StepMetrics& metrics, double) {
                       if (enough) return;
                       curve.take(metrics.lr, metrics.loss);
                       enough = curve.has_diverged();
                       bar.update_if_slow(step);
                     },
                 .enough = &enough,
                 .keep_going = true};
  const RunResult run = experiment.run(experiment.scenario().strategies.front(), backend, hooks);
  bar.clear();
  if (run.outcome != Outcome::interrupted || experiment.interrupted()) announce(run);
  if (curve.rates().empty()) return experiment.exit_code({&run, 1});
  if (format == Format::json) {
    print(pretty(curve_json(curve, run)));
  } else {
    print_curve(curve, run);
  }
  return run.outcome == Outcome::interrupted && !experiment.interrupted()
             ? 0
             : experiment.exit_code({&run, 1});
}

// ---- trials

struct Trial {
  std::vector<std::string> values;  // of the swept options
  RunResult result;
};

// Of the n-th scenario of load_all(): the last option varies first.
std::vector<std::string> values_of(const std::vector<Sweep>& sweeps, std::size_t n) {
  std::vector<std::string> values(sweeps.size());
  for (std::size_t i = sweeps.size(); i-- > 0;) {
    values[i] = sweeps[i].values[n % sweeps[i].values.size()];
    n /= sweeps[i].values.size();
  }
  return values;
}

double best_loss(const Trial& trial) {
  const EvaluationPoint* best = best_evaluation(trial.result);
  return best == nullptr ? INFINITY : best->loss;
}

Table trials_table(const std::vector<Sweep>& sweeps, const std::vector<Trial>& trials) {
  Table table;
  for (const Sweep& sweep : sweeps) table.columns.push_back({sweep.option.substr(2)});
  for (const char* name : {"validation_loss", "perplexity", "after_step", "steps", "run"}) {
    table.columns.push_back({name});
  }
  table.columns.push_back({"outcome", Align::left});
  for (const Trial& trial : trials) {
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const std::string& value : trial.values) row.emplace_back(value);
    const EvaluationPoint* best = best_evaluation(trial.result);
    row.push_back(best == nullptr ? Cell() : Cell(best->loss));
    row.push_back(best == nullptr ? Cell() : Cell(best->perplexity()));
    row.push_back(best == nullptr ? Cell() : Cell(best->step));
    row.emplace_back(trial.result.steps);
    row.push_back(trial.result.run_id == 0 ? Cell() : Cell(trial.result.run_id));
    row.emplace_back(trial.result.message.empty() ? std::string(name_of(trial.result.outcome))
                                                  : trial.result.message);
  }
  return table;
}

std::string arguments_of(const std::vector<Sweep>& sweeps, const Trial& trial) {
  std::string text;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    text += " " + sweeps[i].option + " " + trial.values[i];
  }
  return text;
}

std::vector<Scenario> trial_scenarios(const TuneOptions& options) {
  ScenarioOptions all = options.scenario;
  if (all.sweeps.empty()) {
    throw Error(ErrorCode::usage,
                "give values to try, such as --lr 1e-4,3e-4,1e-3, or --find-lr for a first idea");
  }
  if (!all.overrides.eval_data) {
    throw Error(ErrorCode::usage,
                "--eval-data: give a text that is not trained on; the trials are judged by it");
  }
  if (all.overrides.strategies.empty()) all.overrides.strategies = {"zero-0"};
  std::vector<Scenario> scenarios = load_all(all);
  for (Scenario& scenario : scenarios) {
    require_one_strategy(scenario);
    if (scenario.run.eval_every > 0) continue;
    scenario.run.eval_every = std::max<std::int64_t>(1, scenario.run.steps / 5);
  }
  return scenarios;
}

RunResult run_trial(Experiment& experiment, const std::string& backend, MedianPruner& pruner) {
  pruner.begin();
  std::atomic<bool> enough{false};
  RunHooks hooks{.enough = &enough};
  hooks.on_evaluation = [&](const EvaluationPoint& point, bool) {
    if (pruner.take(point.step, point.loss)) enough = true;
  };
  return experiment.run(experiment.scenario().strategies.front(), backend, std::move(hooks));
}

int run_trials(const TuneOptions& options) {
  const Format format = parse_format(options.format);
  const Runner runner;
  std::vector<Scenario> scenarios = trial_scenarios(options);
  const std::string backend = real_backend(options, scenarios.front(), runner);
  const std::vector<Sweep>& sweeps = options.scenario.sweeps;
  MedianPruner pruner(options.startup);
  ProgressBar bar("trials", static_cast<std::int64_t>(scenarios.size()));
  std::vector<Trial> trials;
  Ending ending;
  for (std::size_t i = 0; i < scenarios.size() && !ending.interrupted; ++i) {
    Experiment experiment(runner, std::move(scenarios[i]), options.database, i == 0);
    const RunResult result = run_trial(experiment, backend, pruner);
    trials.push_back({values_of(sweeps, i), result});
    bar.clear();
    log_info(fmt::format("trial {}:{}: validation loss {:.4f}", i + 1,
                         arguments_of(sweeps, trials.back()), best_loss(trials.back())));
    bar.update_if_slow(static_cast<std::int64_t>(i) + 1);
    experiment.add_to(ending);
  }
  bar.clear();
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial& a, const Trial& b) { return best_loss(a) < best_loss(b); });
  print(render(trials_table(sweeps, trials), format));
  const bool has_best = std::isfinite(best_loss(trials.front()));
  if (has_best) log_info("the best:" + arguments_of(sweeps, trials.front()));
  if (ending.interrupted || ending.not_stored || !has_best) {
    std::vector<RunResult> results;
    for (const Trial& trial : trials) results.push_back(trial.result);
    return exit_code(ending, results, false);
  }
  return 0;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "tune", "Find the learning rate, batch and warm-up that train best, by training");
  const auto options = std::make_shared<TuneOptions>();
  options->database.tags = {"tune"};
  add_scenario_options(*sub, options->scenario);
  add_database_options(*sub, options->database);
  CLI::Option* find =
      sub->add_flag("--find-lr", options->find_lr,
                    "Train once while the learning rate grows, and say where the loss falls best");
  sub->add_option("--lr-from", options->lr_from, "The first rate of --find-lr (default 1e-7)")
      ->needs(find);
  sub->add_option("--lr-to", options->lr_to, "The last one (default 1)")->needs(find);
  sub->add_option("--startup-trials", options->startup,
                  "Trials that run to their end before others are judged by them (default 2)")
      ->check(CLI::Range(std::int64_t{1}, kMaxCount))
      ->excludes(find);
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] {
    action = [options] { return options->find_lr ? find_lr(*options) : run_trials(*options); };
  });
}

}  // namespace zl::cli
