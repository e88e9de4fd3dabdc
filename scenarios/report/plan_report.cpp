#include "scenarios/report/plan_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "results/cells.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/launch.h"
#include "scenarios/planner/why.h"
#include "scenarios/report/report_step.h"

namespace zl {
namespace {

Table question_table(const PlanRequest& request, const RunResult& run) {
  const RunSettings& settings = request.scenario.run;
  Table table{{{"what", Align::left}, {"value", Align::left}},
              {{std::string("model"), request.scenario.model.name},
               {std::string("cluster"), request.scenario.cluster},
               {std::string("ranks"), std::to_string(settings.ranks)},
               {std::string("software"), run.setup.software},
               {std::string("precision"), run.precision},
               {std::string("sequence length"), std::to_string(settings.sequence_length)},
               {std::string("sequences a step"), std::to_string(request.global_batch)},
               {std::string("goal"),
                std::string(request.goal == PlanGoal::memory ? "memory" : "throughput")}}};
  const std::string limits = limits_text(request.limits);
  if (!limits.empty()) table.rows.push_back({std::string("limits"), limits});
  return table;
}

std::string plan_text(const Plan& plan) {
  const RunResult& run = plan.result;
  std::string text = fmt::format(
      "{}: {}. A step takes {}, 9 times out of 10 between {} and {}; {:.0f} tokens/s.",
      plan.strategy.strategy.name, mesh_text(plan.strategy.strategy, run.ranks),
      readable(run.step_time.median, Unit::seconds), readable(run.step_time_low, Unit::seconds),
      readable(run.step_time_high, Unit::seconds), run.tokens_per_second);
  if (run.device_capacity > 0) {
    text += fmt::format(" It takes {} of the {} of a device; fits: {}.",
                        readable(bytes_that_must_fit(run), Unit::bytes),
                        readable(run.device_capacity, Unit::bytes), name_of(fits(run)));
  }
  return text;
}

// Its bars and tables are a report's.
ReportScenario as_scenario(const PlanRequest& request, const Plans& plans) {
  ReportScenario scenario;
  scenario.name = request.scenario.model.name + " on " + request.scenario.cluster;
  for (const Plan& plan : plans.best) {
    ReportRun& run = scenario.runs.emplace_back();
    run.result = plan.result;
    run.result.stages.clear();  // of every plan they would fill the page
    scenario.capacity = plan.result.device_capacity;
    run.name = fmt::format("{}: {}", scenario.runs.size(), plan.strategy.strategy.name);
  }
  return scenario;
}

ReportSection launch_section(const PlanRequest& request, const Plan& plan) {
  const Strategy& strategy = plan.strategy.strategy;
  ReportSection section{"How to run it", {}};
  for (int i = 0; i < kLaunchSoftware; ++i) {
    const auto software = static_cast<LaunchSoftware>(i);
    ReportPart part{.heading = name_of(software), .text = {}, .svg = {}, .table = {}};
    try {
      const LaunchFile file = write_launch(software, strategy, launch_facts(request.scenario));
      for (const std::string& note : file.notes)
        part.text += (part.text.empty() ? "" : "; ") + note;
      part.code = file.text;
    } catch (const Error& error) {
      part.text = error.what();
    }
    section.parts.push_back(std::move(part));
  }
  section.parts.push_back({.heading = "zerolab",
                           .text = "As a strategy: zerolab run MODEL --strategy FILE.",
                           .svg = {},
                           .table = {},
                           .code = strategy_to_json(strategy).dump(2)});
  return section;
}

// Sentences have a table of their own: the other one is as wide as a page.
Table without_reasons(Table table) {
  table.columns.pop_back();
  for (std::vector<Cell>& row : table.rows) row.pop_back();
  return table;
}

Table reasons_table(const std::vector<Plan>& plans) {
  Table table{{{"plan"}, {"strategy", Align::left}, {"beside the next", Align::left}}, {}};
  for (const Plan& plan : plans) {
    table.rows.push_back({static_cast<std::int64_t>(table.rows.size() + 1),
                          plan.strategy.strategy.name, known_text(plan.why)});
  }
  return table;
}

}  // namespace

ReportPage plan_report(const PlanRequest& request, const Plans& plans, const TrainingBill& bill,
                       const Plan& plan) {
  ReportScenario scenario = as_scenario(request, plans);
  scenario.steps = {last_step(request.scenario, replay(request.scenario, plan.strategy))};
  ReportPage page{"Plan: " + scenario.name, counts_line(plans), {}};
  page.sections = {{"The plan", {{"", plan_text(plan), "", question_table(request, plan.result)}}},
                   {"The plans",
                    {{"", "The best of those that were recorded in full.", "",
                      without_reasons(plan_table(plans.best, bill))},
                     {"Why in this order", "", "", reasons_table(plans.best)},
                     {"Memory and throughput", "None of these is better in both.", "",
                      without_reasons(frontier_table(plans, bill))}}},
                   launch_section(request, plan),
                   memory_section(scenario),
                   step_time_section(scenario),
                   timeline_section(scenario)};
  return page;
}

}  // namespace zl
