#include "scenarios/cli/plan_output.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "scenarios/cli/output.h"
#include "scenarios/files/strategy_json.h"

namespace zl::cli {
namespace {

std::vector<Robustness> all_robust(const PlanRequest& request, const Plans& plans,
                                   const RobustnessQuestion& question) {
  std::vector<Robustness> all;
  for (const Plan& plan : plans.best) all.push_back(robustness_of(request, plan, question));
  return all;
}

// Whose abilities leave plans that the configuration can say.
std::string profile_for(LaunchSoftware software) {
  switch (software) {
    case LaunchSoftware::deepspeed:
      return "deepspeed";
    case LaunchSoftware::megatron:
      return "megatron-core";
    default:
      return "torch-fsdp2";
  }
}

LaunchFile launch_file(LaunchSoftware software, const Strategy& strategy,
                       const Scenario& scenario) {
  try {
    return write_launch(software, strategy, launch_facts(scenario));
  } catch (const Error& error) {
    const std::string profile = profile_for(software);
    if (error.code() != ErrorCode::invalid || scenario.run.software == profile) throw;
    throw Error(error.code(), std::string(error.what()) + "; or with --software " + profile +
                                  ", which tries only what that has");
  }
}

}  // namespace

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

void print_plans(const PlanRequest& request, const Plans& plans, const TrainingBill& bill,
                 const RobustnessQuestion& asked, Format format) {
  Table robust;
  if (asked.is_asked()) robust = robustness_table(plans.best, all_robust(request, plans, asked));
  if (format == Format::json) {
    Json json = plans_json(plans, bill);
    if (asked.is_asked()) json["over_weeks"] = Json::parse(render(robust, format));
    return print(pretty(json));
  }
  const std::string gap = format == Format::md ? "\n" : "";
  std::string text = fitted_text(plan_table(plans.best, bill), format);
  if (format != Format::csv) {
    text += "\nMemory and throughput, none better in both:\n" + gap +
            fitted_text(frontier_table(plans, bill), format);
  }
  if (asked.is_asked()) text += "\nOver weeks:\n" + gap + fitted_text(robust, format);
  print(text);
}

void print_launch(const PlanOutput& output, const Plan& plan, const Scenario& scenario) {
  const Strategy& strategy = plan.strategy.strategy;
  if (output.is_strategy) return print(pretty(strategy_to_json(strategy)));
  const LaunchFile file = launch_file(*output.software, strategy, scenario);
  for (const std::string& note : file.notes) log_warning(note);
  print(file.text);
}

}  // namespace zl::cli
