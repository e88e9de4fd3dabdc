// `zerolab evaluate`: how well a model predicts a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "results/format.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/experiment.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/run/training_data.h"

namespace zl::cli {
namespace {

struct EvaluateOptions {
  ScenarioOptions scenario;
  std::string format = "table";
};

// A training of no steps, judged once. Its own data are not read.
Scenario scenario_of(EvaluateOptions options) {
  ScenarioOverrides& overrides = options.scenario.overrides;
  if (!overrides.eval_data) {
    throw Error(ErrorCode::usage, "--eval-data: give the text that the model is to predict");
  }
  overrides.data = "synthetic";
  if (overrides.strategies.empty()) overrides.strategies = {"zero-0"};
  if (!overrides.ranks) overrides.ranks = 1;
  Scenario scenario = load(options.scenario);
  if (scenario.strategies.size() > 1) {
    throw Error(ErrorCode::usage, "--strategy: give one; all predict the same");
  }
  scenario.run.steps = 0;
  scenario.run.eval_every = 1;
  return scenario;
}

// In bits, which does not depend on the tokenizer; none of a text that is not counted whole.
std::optional<double> bits_per_byte(const EvaluationPoint& point, std::int64_t bytes) {
  if (bytes == 0) return {};
  return point.loss * static_cast<double>(point.tokens) / std::log(2.0) /
         static_cast<double>(bytes);
}

Json point_json(const Scenario& scenario, const EvaluationPoint& point,
                const std::optional<double>& bits) {
  const RunSettings& run = scenario.run;
  return {{"model", scenario.model.name},
          {"data", run.eval_data},
          {"sequence_length", run.sequence_length},
          {"stride", run.eval_stride == 0 ? run.sequence_length : run.eval_stride},
          {"loss", point.loss},
          {"perplexity", point.perplexity()},
          {"tokens", point.tokens},
          {"bits_per_byte", bits ? Json(*bits) : Json()}};
}

int evaluate(const EvaluateOptions& options) {
  const Format format = table_or_json(options.format);
  const Runner runner;
  Scenario scenario = scenario_of(options);
  const auto backends = choose_backends(options.scenario.backends, scenario, runner);
  if (backends.size() > 1 || runner.backends().capabilities(backends.front()).is_recording) {
    throw Error(ErrorCode::usage, "--backend: give cpu or cuda; the simulator has no loss");
  }
  Experiment experiment(runner, std::move(scenario), {.off = true});
  const ImportedStrategy& strategy = experiment.scenario().strategies.front();
  const RunResult result = experiment.run(strategy, backends.front(), {});
  announce(result);
  if (result.evaluations.empty()) return experiment.exit_code({&result, 1});
  const EvaluationPoint& point = result.evaluations.front();
  const auto bits = bits_per_byte(point, open_evaluation(experiment.scenario()).text_bytes);
  const Json object = point_json(experiment.scenario(), point, bits);
  if (format == Format::json) {
    print(pretty(object));
    return 0;
  }
  print(
      fmt::format("{}: loss {:.5f}, perplexity {:.5f}, over {} tokens of {} (sequences of {}, one "
                  "every {}){}\n",
                  experiment.scenario().model.name, point.loss, point.perplexity(), point.tokens,
                  experiment.scenario().run.eval_data, object["sequence_length"].dump(),
                  object["stride"].dump(), bits ? fmt::format(", {:.4f} bits a byte", *bits) : ""));
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("evaluate", "Say how well a model predicts a text");
  const auto options = std::make_shared<EvaluateOptions>();
  add_scenario_options(*sub, options->scenario);
  add_format(*sub, options->format, "table or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return evaluate(*options); }; });
}

}  // namespace zl::cli
