#include "scenarios/cli/plan_options.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/launch/launch.h"
#include "scenarios/planner/grid.h"
#include "scenarios/planner/plan_words.h"

namespace zl::cli {
namespace {

std::int64_t number_of_gpus(const std::string& text, const std::string& all) {
  const std::int64_t value = integer_in(text).value_or(0);
  if (value < 1 || value > kMaxCount) {
    throw Error(ErrorCode::usage, "--gpus: \"" + shortened(all) +
                                      "\" is no range; write 8..1024, or a list: 8,16,48");
  }
  return value;
}

// "8..1024": doubled from the first to the last.
std::vector<std::int64_t> numbers_of_gpus(const std::string& text) {
  std::vector<std::int64_t> all;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    for (const std::string& each : listed_values(text)) all.push_back(number_of_gpus(each, text));
    return all;
  }
  const std::int64_t first = number_of_gpus(text.substr(0, dots), text);
  const std::int64_t last = number_of_gpus(text.substr(dots + 2), text);
  if (first > last) number_of_gpus("", text);
  for (std::int64_t gpus = first; gpus < last; gpus *= 2) all.push_back(gpus);
  all.push_back(last);
  return all;
}

std::vector<double> parse_prices(const std::string& text) {
  std::vector<double> prices;
  for (const std::string& each : listed_values(text)) {
    prices.push_back(of_option("--price", [&] { return parse_price(each); }));
  }
  return prices;
}

// What a search decides, by the option that other commands set it with.
struct Decided {
  const char *option, *instead;
};
constexpr Decided kDecided[] = {
    {"--strategy", "--from FILE begins with one"},
    {"--recompute", "limit it: --constrain recompute=full"},
    {"--offload", "limit it: --constrain offload=none"},
    {"--tensor", "limit it: --constrain tensor=2"},
    {"--sequence-parallel", "limit it: --constrain sequence_parallel=true"},
    {"--replicate", "limit it: --constrain replicate=2"},
    {"--pipeline", "limit it: --constrain pipeline=2"},
    {"--virtual-stages", "limit it: --constrain virtual_stages=2"},
    {"--schedule", "limit it: --constrain schedule=1f1b"},
    {"--layers-per-stage", "stages of a plan have as many layers each"},
    {"--micro-batch", "limit it: --constrain micro_batch=2"},
    {"--gradient-accumulation", "it follows from --global-batch"},
    {"--backend", "plans are predictions; --twin trains one"}};

// They are refused with what does it, and not listed.
void refuse_decided(CLI::App& app) {
  for (const Decided& each : kDecided) {
    app.remove_option(app.get_option(each.option));
    app.add_option_function<std::string>(
           each.option,
           [each](const std::string&) {
             throw Error(ErrorCode::usage,
                         std::string(each.option) + ": the planner decides it; " + each.instead);
           })
        ->expected(0, 1)
        ->group("");
  }
}

}  // namespace

std::vector<ScenarioOverrides> variants(const PlanOptions& options) {
  std::vector<ScenarioOverrides> all{options.scenario.overrides};
  const auto vary = [&all](std::size_t count, const auto& set) {
    std::vector<ScenarioOverrides> longer;
    for (const ScenarioOverrides& before : all) {
      for (std::size_t i = 0; i < count; ++i) set(i, longer.emplace_back(before));
    }
    all = std::move(longer);
  };
  for (const Sweep& sweep : options.scenario.sweeps) {
    vary(sweep.values.size(),
         [&](std::size_t i, ScenarioOverrides& into) { sweep.set(sweep.values[i], into); });
  }
  if (!options.clusters.empty()) {
    if (options.scenario.overrides.cluster) {
      throw Error(ErrorCode::usage, "--cluster: is one of --clusters; give all of them there");
    }
    const std::vector<std::string> clusters = listed_values(options.clusters);
    vary(clusters.size(),
         [&](std::size_t i, ScenarioOverrides& into) { into.cluster = clusters[i]; });
  }
  if (options.gpus.empty()) return all;
  const std::vector<std::int64_t> gpus = numbers_of_gpus(options.gpus);
  vary(gpus.size(), [&](std::size_t i, ScenarioOverrides& into) {
    if (!into.cluster) {
      throw Error(ErrorCode::usage, "--gpus: of which kind? Add --cluster, such as h100");
    }
    into.cluster = std::to_string(gpus[i]) + "x" + kind_of_gpus(*into.cluster);
  });
  return all;
}

TrainingBill training_bill(const PlanOptions& options) {
  TrainingBill bill;
  if (!options.tokens.empty()) {
    bill.tokens = of_option("--tokens", [&] { return parse_tokens(options.tokens); });
  }
  const std::size_t prices = options.prices.size();
  const std::size_t clusters = listed_values(options.clusters).size();
  if (prices > 1 && prices != clusters) {
    throw Error(ErrorCode::usage, "--price: " + std::to_string(prices) + " prices of " +
                                      std::to_string(clusters) +
                                      " --clusters; give one for all, or one for each");
  }
  if (prices > 0) bill.gpu_hour_price = options.prices.front();
  return bill;
}

double price_on(const PlanOptions& options, const std::string& cluster) {
  const std::vector<double>& prices = options.prices;
  if (prices.empty()) return 0;
  if (prices.size() == 1) return prices.front();
  const std::vector<std::string> clusters = listed_values(options.clusters);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (kind_of_gpus(clusters[i]) == kind_of_gpus(cluster)) return prices[i];
  }
  return prices.front();
}

RobustnessQuestion robustness_question(const PlanOptions& options) {
  RobustnessQuestion question;
  if (!options.failures.empty()) {
    of_option("--failures", [&] { parse_failures(options.failures, question); });
  }
  if (!options.stragglers.empty()) {
    of_option("--stragglers", [&] { parse_stragglers(options.stragglers, question); });
  }
  return question;
}

void add_plan_options(CLI::App& app, PlanOptions& options) {
  add_scenario_options(app, options.scenario);
  refuse_decided(app);
  app.add_option("--global-batch", options.global_batch, "Sequences a step, of all ranks")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, kMaxCount));
  app.add_option("--goal", options.goal, "throughput, memory or cost")->capture_default_str();
  app.add_option("--top", options.top, "Plans that are shown")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100}))
      ->capture_default_str();
  app.add_option("--constrain", options.limits, "Limits: tensor<=8,zero=1,schedule=1f1b");
  app.add_option("--gpus", options.gpus, "How many are needed: 8..1024, or a list");
  app.add_option("--clusters", options.clusters, "Which of them: 256xh100,128xh200");
  app.add_option("--tokens", options.tokens, "To train on: days, GPU-hours and energy; 15T, 300B");
  app.add_option_function<std::string>(
      "--price", [&options](const std::string& text) { options.prices = parse_prices(text); },
      "What it costs: 2.5/gpu-hour, or one for each of --clusters");
  app.add_option("--failures", options.failures,
                 "GPUs fail: mtbf=50000h of one, restart=10m; when to write checkpoints, goodput");
  app.add_option("--stragglers", options.stragglers,
                 "Some GPUs are slow in a step: 1%:1.2x, so many of them, so many times as long");
  app.add_option(
      "--from", options.from,
      "What I run today: a strategy, a scenario with one, DeepSpeed's JSON, Megatron-LM's "
      "script or torchtitan's TOML; what to change first, and what each change gains");
  app.add_option("--report", options.report,
                 "Also a page, .html or .md: the plans, charts, and what each software is told");
  app.add_flag("--twin", options.twin,
               "Then train the best plan here, small, on CPU ranks, beside its own simulation");
  add_database_options(app, options.database);
  app.add_option("--pick", options.pick,
                 "Which plan of the list -o SOFTWARE writes, --twin trains and --report shows")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100}))
      ->capture_default_str();
  add_format(
      app, options.format,
      "table, wide, md, csv, json, or a plan as a file: zerolab, " + launch_software_names());
}

}  // namespace zl::cli
