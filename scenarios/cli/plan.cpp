// `zerolab plan`: which strategy to run, on how many GPUs, and what it costs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/notes.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/plan_options.h"
#include "scenarios/cli/plan_output.h"
#include "scenarios/cli/plan_twin.h"
#include "scenarios/cli/progress.h"
#include "scenarios/files/clusters.h"
#include "scenarios/launch/import_any.h"
#include "scenarios/planner/plan_walk.h"
#include "scenarios/report/plan_report.h"

namespace zl::cli {
namespace {

// As many as one question shows: of so many one surely fits, as a rule.
constexpr std::size_t kPlansOfAnswer = 10;

PlanRequest plan_request(const PlanOptions& options, const ScenarioOverrides& overrides) {
  PlanRequest request;
  request.scenario = plan_scenario(options.scenario.scenario, overrides);
  request.global_batch = options.global_batch;
  request.goal = plan_goal(options.goal);
  request.top = static_cast<std::size_t>(std::max(options.top, options.pick));
  request.limits = of_option("--constrain", [&] { return parse_limits(options.limits); });
  return request;
}

Plans search(const PlanRequest& request) {
  std::unique_ptr<ProgressBar> bar;
  std::string phase;
  PlanHooks hooks;
  hooks.progress = [&](std::int64_t done, std::int64_t of, const char* what) {
    if (phase != what) {
      phase = what;
      // A search ends where no bound is below what it has.
      bar = std::make_unique<ProgressBar>(what, std::max<std::int64_t>(1, of), true);
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

// Of those that surely fit, where there are any.
const Plan& fastest(const std::vector<Plan>& plans) {
  return *std::ranges::min_element(plans, {}, [](const Plan& plan) {
    return std::pair(fits(plan.result) != Fits::yes, plan.result.step_time.median);
  });
}

// Of all questions, each once.
void say_warnings(const PlanRequest& request, std::set<std::string>& said) {
  for (const std::string& warning : warnings_of(request)) {
    if (said.insert(warning).second) log_warning(warning);
  }
}

// Several answers: of each its best plan.
int answer_all(const PlanOptions& options, const std::vector<ScenarioOverrides>& all,
               const TrainingBill& bill, Format format) {
  std::vector<PlanAnswer> answers;
  std::set<std::string> said;
  for (const ScenarioOverrides& each : all) {
    PlanRequest request = plan_request(options, each);
    say_warnings(request, said);
    request.top = kPlansOfAnswer;
    PlanAnswer& answer = answers.emplace_back();
    answer.cluster = request.scenario.cluster;
    answer.gpus = request.scenario.run.ranks;
    answer.board_watts = scenario_cluster(request.scenario).device.power_limit;
    answer.gpu_hour_price = price_on(options, answer.cluster);
    answer.sequence_length = request.scenario.run.sequence_length;
    try {
      Plans plans = search(request);
      answer.refusal = plans.shortage;
      if (!plans.best.empty()) answer.best = fastest(plans.best);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid) throw;
      answer.refusal = error.what();
    }
  }
  print(format == Format::json ? pretty(answers_json(answers, bill))
                               : fitted_text(answers_table(answers, bill), format));
  const bool any = std::ranges::any_of(answers, [](const auto& each) { return !!each.best; });
  return any ? 0 : static_cast<int>(ErrorCode::infeasible);
}

const Plan& picked(const Plans& plans, std::int64_t number) {
  if (number <= static_cast<std::int64_t>(plans.best.size())) return plans.best[number - 1];
  throw Error(ErrorCode::usage, "--pick: there is no plan " + std::to_string(number) +
                                    ", the list has " + std::to_string(plans.best.size()));
}

// What is asked of one plan, and what is written of one.
void check_question(const PlanOptions& options, const RobustnessQuestion& asked,
                    const PlanOutput& output, std::size_t questions) {
  if (options.twin && (questions > 1 || !output.is_table())) {
    throw Error(ErrorCode::usage, "--twin: prints tables of one plan; ask one question, -o table");
  }
  const bool is_shown = output.is_table() || (!output.is_file() && output.format == Format::json);
  if (asked.is_asked() && (questions > 1 || !is_shown)) {
    throw Error(ErrorCode::usage,
                "--failures and --stragglers: tables of one question; give every option one value, "
                "-o table or json");
  }
  if (!options.from.empty() && (questions > 1 || output.is_file() || options.twin)) {
    throw Error(ErrorCode::usage,
                "--from: is the way from one configuration, as a table or JSON; give every option "
                "one value, -o table, md, csv or json, and no --twin");
  }
  if (!options.report.empty() && (questions > 1 || !options.from.empty())) {
    throw Error(ErrorCode::usage,
                "--report: is of one search; give every option one value, and no --from");
  }
  if (!options.report.empty()) is_html_page("--report", options.report);
  if (questions > 1 && output.is_file()) {
    throw Error(ErrorCode::usage, "-o " + options.format + " writes one plan, this asks for " +
                                      std::to_string(questions) +
                                      "; give one value of each option");
  }
}

void write_report(const PlanOptions& options, const PlanRequest& request, const Plans& plans,
                  const TrainingBill& bill) {
  const ReportPage page = plan_report(request, plans, bill, picked(plans, options.pick));
  write_file(options.report,
             is_html_page("--report", options.report) ? page_html(page) : page_markdown(page));
  log_info("wrote " + options.report);
}

// The way from what runs today; the search's best beside its end.
int show_way(const PlanRequest& request, const std::string& from, const TrainingBill& bill,
             Format format) {
  const Scenario& scenario = request.scenario;
  const ImportContext context{
      .ranks = scenario.run.ranks,
      .model = &scenario.model,
      .default_precision = scenario.strategies.front().strategy.precision.compute_dtype};
  ImportedStrategy start = of_option("--from", [&] { return import_any(from, context); });
  say_problems(start);
  if (start.strategy.name.empty()) start.strategy.name = name_of_file(from);
  const std::vector<WalkStep> steps = walk_from(request, start);
  const Plans plans = search(request_like(request, start));
  const Plan* best = plans.best.empty() ? nullptr : &fastest(plans.best);
  if (format == Format::json) {
    Json json = {{"schema", 1}, {"steps", walk_json(steps, bill)}};
    json["best"] = best != nullptr ? plan_json(*best, bill) : Json(nullptr);
    print(pretty(json));
  } else {
    print(fitted_text(walk_table(steps, best, bill), format));
  }
  return 0;
}

int run(const PlanOptions& options) {
  TrainingBill bill = training_bill(options);
  const RobustnessQuestion asked = robustness_question(options);
  const PlanOutput output = plan_output(options.format);
  const std::vector<ScenarioOverrides> all = variants(options);
  check_question(options, asked, output, all.size());
  if (all.size() > 1) return answer_all(options, all, bill, output.format);
  const PlanRequest request = plan_request(options, all.front());
  std::set<std::string> said;
  say_warnings(request, said);
  bill.board_watts = scenario_cluster(request.scenario).device.power_limit;
  if (!options.from.empty()) return show_way(request, options.from, bill, output.format);
  const Plans plans = search(request);
  if (plans.best.empty()) {
    throw Error(ErrorCode::infeasible, "no plan fits: " + plans.shortage);
  }
  if (!options.report.empty()) write_report(options, request, plans, bill);
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
  add_plan_options(*sub, *options);
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace zl::cli
