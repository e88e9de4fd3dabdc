// `zerolab plan`: which strategy to run, on how many GPUs, and what it costs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/plan_twin.h"
#include "scenarios/cli/progress.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/defaults.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/launch.h"
#include "scenarios/planner/grid.h"
#include "scenarios/planner/plan_tables.h"
#include "scenarios/planner/robustness.h"

namespace zl::cli {
namespace {

bool is_for_programs(const std::string& format) {
  return format != "table" && format != "wide" && format != "md";
}

struct PlanOptions {
  ScenarioOptions scenario;
  DatabaseOptions database;  // of the twin
  bool twin = false;
  std::int64_t global_batch = 0, top = 10, pick = 1;
  std::string goal = "throughput", limits, format = "table";
  std::string gpus, clusters, tokens, price, failures, stragglers;
};

PlanRequest plan_request(const PlanOptions& options, const ScenarioOverrides& overrides) {
  PlanRequest request;
  request.scenario = plan_scenario(options.scenario.scenario, overrides);
  request.global_batch = options.global_batch;
  request.goal = plan_goal(options.goal);
  request.top = static_cast<std::size_t>(std::max(options.top, options.pick));
  request.limits = parse_limits(options.limits);
  return request;
}

Plans search(const PlanRequest& request) {
  std::unique_ptr<ProgressBar> bar;
  std::string phase;
  PlanHooks hooks;
  hooks.progress = [&](std::int64_t done, std::int64_t of, const char* what) {
    if (phase != what) {
      phase = what;
      bar = std::make_unique<ProgressBar>(what, std::max<std::int64_t>(1, of));
    }
    bar->update_if_slow(std::min(done, of));
  };
  bool is_first = true;
  hooks.found = [&](const Plans& so_far) {
    if (is_first) log_info("first: " + plan_line(so_far.best.front()));
    is_first = false;
  };
  Plans plans = find_plans(request, hooks);
  bar.reset();
  log_info(counts_line(plans));
  return plans;
}

std::int64_t number_of_gpus(const std::string& text, const std::string& all) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMaxCount) {
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

// "256xh100" -> "h100".
std::string device_of(const std::string& cluster) {
  if (devices_in_name(cluster) == 0) return cluster;
  return cluster.substr(cluster.find('x') + 1);
}

// One for each value of the options that have several.
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
    into.cluster = std::to_string(gpus[i]) + "x" + device_of(*into.cluster);
  });
  return all;
}

// Several answers: of each its best plan.
int answer_all(const PlanOptions& options, const std::vector<ScenarioOverrides>& all,
               const TrainingBill& bill) {
  const Format format = parse_format(options.format);
  std::vector<PlanAnswer> answers;
  for (const ScenarioOverrides& each : all) {
    PlanRequest request = plan_request(options, each);
    request.top = 1;
    PlanAnswer& answer = answers.emplace_back();
    answer.cluster = request.scenario.cluster;
    answer.gpus = request.scenario.run.ranks;
    answer.sequence_length = request.scenario.run.sequence_length;
    try {
      Plans plans = search(request);
      answer.refusal = plans.shortage;
      if (!plans.best.empty()) answer.best = std::move(plans.best.front());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid) throw;
      answer.refusal = error.what();
    }
  }
  print(render(answers_table(answers, bill), format));
  const bool any = std::ranges::any_of(answers, [](const auto& each) { return !!each.best; });
  return any ? 0 : static_cast<int>(ErrorCode::infeasible);
}

RobustnessQuestion robustness_question(const PlanOptions& options) {
  RobustnessQuestion question;
  if (!options.failures.empty()) parse_failures(options.failures, question);
  if (!options.stragglers.empty()) parse_stragglers(options.stragglers, question);
  return question;
}

std::vector<Robustness> all_robust(const PlanRequest& request, const Plans& plans,
                                   const RobustnessQuestion& question) {
  std::vector<Robustness> all;
  for (const Plan& plan : plans.best) all.push_back(robustness_of(request, plan, question));
  return all;
}

// What is asked of one plan after the other.
void check_question(const PlanOptions& options, const RobustnessQuestion& asked, bool has_several) {
  if (options.twin && (has_several || is_for_programs(options.format))) {
    throw Error(ErrorCode::usage, "--twin: prints tables of one plan; ask one question, -o table");
  }
  if (asked.is_asked() &&
      (has_several || (is_for_programs(options.format) && options.format != "json"))) {
    throw Error(ErrorCode::usage,
                "--failures and --stragglers: tables of one question; give every option one value, "
                "-o table or json");
  }
}

void print_plans(const PlanRequest& request, const Plans& plans, const TrainingBill& bill,
                 const RobustnessQuestion& asked, Format format) {
  Table robust;
  if (asked.is_asked()) robust = robustness_table(plans.best, all_robust(request, plans, asked));
  if (format == Format::json) {
    Json json = plans_json(plans, bill);
    if (asked.is_asked()) json["over_weeks"] = Json::parse(render(robust, format));
    return print(pretty(json));
  }
  std::string text = plans_text(plans, bill, format);
  const std::string gap = format == Format::md ? "\n" : "";
  if (asked.is_asked()) text += "\nOver weeks:\n" + gap + render(robust, format);
  print(text);
}

// How the answer is written: for reading, as a strategy of zerolab's, or as another software's
// configuration.
struct PlanOutput {
  Format format = Format::json;
  bool is_strategy = false;
  std::optional<LaunchSoftware> software = {};

  bool is_file() const { return is_strategy || software; }
};

PlanOutput plan_output(const std::string& name) {
  PlanOutput output{.is_strategy = name == "zerolab", .software = launch_software(name)};
  if (output.is_file()) return output;
  try {
    output.format = parse_format(name);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + "; or what runs the plan: zerolab, " +
                                  launch_software_names());
  }
  return output;
}

const Plan& picked(const Plans& plans, std::int64_t number) {
  if (number <= static_cast<std::int64_t>(plans.best.size())) return plans.best[number - 1];
  throw Error(ErrorCode::usage, "--pick: there is no plan " + std::to_string(number) +
                                    ", the list has " + std::to_string(plans.best.size()));
}

void print_launch(const PlanOutput& output, const Plan& plan, const Scenario& scenario) {
  const Strategy& strategy = plan.strategy.strategy;
  if (output.is_strategy) return print(pretty(strategy_to_json(strategy)));
  const std::string& software = scenario.run.software;
  const LaunchFacts facts{.model = scenario.model,
                          .ranks = scenario.run.ranks,
                          .node_devices = scenario_cluster(scenario).node_devices,
                          .sequence_length = scenario.run.sequence_length,
                          .compiles = software.empty() || software.ends_with("-compile")};
  const LaunchFile file = write_launch(*output.software, strategy, facts);
  for (const std::string& note : file.notes) log_warning(note);
  print(file.text);
}

int run(const PlanOptions& options) {
  TrainingBill bill;
  if (!options.tokens.empty()) bill.tokens = parse_tokens(options.tokens);
  if (!options.price.empty()) bill.gpu_hour_price = parse_price(options.price);
  const RobustnessQuestion asked = robustness_question(options);
  const PlanOutput output = plan_output(options.format);
  const std::vector<ScenarioOverrides> all = variants(options);
  check_question(options, asked, all.size() > 1);
  if (all.size() > 1 && output.is_file()) {
    throw Error(ErrorCode::usage, "-o " + options.format + " writes one plan, this asks for " +
                                      std::to_string(all.size()) +
                                      "; give one value of each option");
  }
  if (all.size() > 1) return answer_all(options, all, bill);
  const PlanRequest request = plan_request(options, all.front());
  const Plans plans = search(request);
  if (plans.best.empty()) {
    throw Error(ErrorCode::infeasible, "no plan fits: " + plans.shortage);
  }
  if (output.is_file()) {
    print_launch(output, picked(plans, options.pick), request.scenario);
  } else {
    print_plans(request, plans, bill, asked, output.format);
  }
  if (!options.twin) return 0;
  const Plan& plan = picked(plans, options.pick);
  return train_twin(request.scenario, plan.strategy, options.database, output.format);
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("plan", "Find the strategies that train a model fastest");
  const auto options = std::make_shared<PlanOptions>();
  add_scenario_options(*sub, options->scenario);
  sub->add_option("--global-batch", options->global_batch, "Sequences a step, of all ranks")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, kMaxCount));
  sub->add_option("--goal", options->goal, "throughput, memory or cost")->capture_default_str();
  sub->add_option("--top", options->top, "Plans that are shown")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100}))
      ->capture_default_str();
  sub->add_option("--constrain", options->limits, "Limits: tensor<=8,zero=1,schedule=1f1b");
  sub->add_option("--gpus", options->gpus, "How many are needed: 8..1024, or a list");
  sub->add_option("--clusters", options->clusters, "Which of them: 256xh100,128xh200");
  sub->add_option("--tokens", options->tokens, "To train on: days and GPU-hours; 15T, 300B");
  sub->add_option("--price", options->price, "What it costs: 2.5/gpu-hour");
  sub->add_option("--failures", options->failures,
                  "GPUs fail: mtbf=50000h of one, restart=10m; when to write checkpoints, goodput");
  sub->add_option("--stragglers", options->stragglers,
                  "Some GPUs are slow in a step: 1%:1.2x, so many of them, so many times as long");
  sub->add_flag("--twin", options->twin,
                "Then train the best plan here, small, on CPU ranks, beside its own simulation");
  add_database_options(*sub, options->database);
  sub->add_option("--pick", options->pick,
                  "Which plan of the list -o SOFTWARE writes and --twin trains")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100}))
      ->capture_default_str();
  add_format(
      *sub, options->format,
      "table, wide, md, csv, json, or a plan as a file: zerolab, " + launch_software_names());
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace zl::cli
