#include "scenarios/report/collect_report.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/nearest.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/report/report_step.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

void require_known(const std::string& what, const std::string& name,
                   const std::set<std::string>& known, const std::string& database) {
  if (known.count(name) != 0) return;
  throw Error(ErrorCode::invalid, database + ": no run of " + what + " \"" + name +
                                      "\"; the nearest is \"" +
                                      nearest(name, {known.begin(), known.end()}) + "\"");
}

// The newest run of each scenario, strategy and backend that is not a crash, else the newest.
std::vector<RunSummary> select_runs(Store& store, const std::string& database,
                                    const ReportFilter& filter) {
  const std::vector<RunSummary> all = store.list();
  if (all.empty()) {
    throw Error(ErrorCode::invalid,
                database + ": no runs to report; `zerolab run demo --backend cpu,sim` makes some");
  }
  std::set<std::string> scenarios, strategies;
  for (const RunSummary& run : all) {
    scenarios.insert(run.scenario_name);
    if (filter.scenario.empty() || filter.scenario == run.scenario_name) {
      strategies.insert(run.strategy);
    }
  }
  if (!filter.scenario.empty()) require_known("scenario", filter.scenario, scenarios, database);
  for (const std::string& name : filter.strategies) {
    require_known("strategy", name, strategies, database);
  }
  std::map<std::tuple<std::string, std::string, std::string>, RunSummary> chosen;
  for (const RunSummary& run : all) {
    const auto& wanted = filter.strategies;
    const bool named =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), run.strategy) != wanted.end();
    if (!named || (!filter.scenario.empty() && filter.scenario != run.scenario_name)) continue;
    const auto [found, first] =
        chosen.try_emplace({run.scenario_hash, run.strategy, run.backend}, run);
    const bool crashed = found->second.outcome == Outcome::failed;
    if (!first && crashed && run.outcome != Outcome::failed) found->second = run;
  }
  std::vector<RunSummary> runs;
  for (const auto& [key, run] : chosen) runs.push_back(run);
  return runs;
}

// The scenario without its strategies and its name: what runs side by side have in common.
std::string family_of(const std::string& scenario_json) {
  Json json = Json::parse(scenario_json);
  json.erase("strategies");
  json.erase("name");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_facts(const Scenario& scenario, ReportScenario& out) {
  out.facts = {{"model", scenario.model.name},
               {"parameters", std::to_string(scenario.model.parameters())},
               {"cluster", scenario.cluster},
               {"ranks", std::to_string(scenario.run.ranks)},
               {"steps", std::to_string(scenario.run.steps)},
               {"sequence length", std::to_string(scenario.run.sequence_length)},
               {"data", scenario.run.data},
               {"seed", std::to_string(scenario.run.seed)}};
  if (scenario.run.device_memory > 0) {
    out.facts.emplace_back("device memory", format_bytes(scenario.run.device_memory));
  }
  out.capacity = memory_budget(scenario, scenario_cluster(scenario));
}

// Adds what the stored scenario of a run says and one step of it; returns the device bytes that it
// needs, 0 when it cannot be simulated.
std::int64_t add_step(Store& store, const RunSummary& run, ReportScenario& out) {
  ReportStep step;
  std::int64_t needed = 0;
  try {
    const Scenario scenario =
        scenario_from_json(store.scenario_json(run.scenario_hash), run.scenario_name);
    if (out.facts.empty()) write_facts(scenario, out);
    const Replay simulated = replay(scenario, scenario.strategies.at(0));
    step = last_step(simulated);
    needed = simulated.needed();
  } catch (const std::exception& error) {  // of another version, or on a cluster that is gone
    step.problem = error.what();
  }
  step.strategy = run.strategy;
  out.steps.push_back(std::move(step));
  return needed;
}

ReportScenario collect_scenario(Store& store, std::vector<RunSummary> runs) {
  std::sort(runs.begin(), runs.end(), [](const RunSummary& a, const RunSummary& b) {
    return std::tie(a.strategy, a.scenario_hash, a.backend) <
           std::tie(b.strategy, b.scenario_hash, b.backend);
  });
  ReportScenario out;
  out.name = runs[0].scenario_name;
  std::map<std::string, std::int64_t> needed;  // by scenario hash
  for (const RunSummary& run : runs) {
    const auto [found, first] = needed.try_emplace(run.scenario_hash, 0);
    if (first) found->second = add_step(store, run, out);
    ReportRun& row = out.runs.emplace_back();
    row.result = store.load(run.id);
    row.result.run_id = run.id;
    row.saved_at = run.saved_at;
    row.scenario_hash = run.scenario_hash;
    if (run.outcome == Outcome::out_of_memory) row.needed = found->second;
  }
  return out;
}

std::vector<ReportEnvironment> collect_environments(Store& store, std::vector<RunSummary> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const RunSummary& a, const RunSummary& b) { return a.id < b.id; });
  std::vector<ReportEnvironment> out;
  for (const RunSummary& run : runs) {
    const Environment environment = store.environment(run.id);
    auto found = std::find_if(out.begin(), out.end(), [&](const ReportEnvironment& each) {
      return each.environment == environment;
    });
    if (found == out.end()) found = out.insert(out.end(), {environment, {}, run.saved_at, {}});
    found->runs.push_back(run.id);
    found->last = run.saved_at;
  }
  return out;
}

}  // namespace

Report collect_report(Store& store, const std::string& database, const ReportFilter& filter) {
  const std::vector<RunSummary> runs = select_runs(store, database, filter);
  std::map<std::string, std::vector<RunSummary>> families;
  for (const RunSummary& run : runs) {
    families[family_of(store.scenario_json(run.scenario_hash))].push_back(run);
  }
  const auto newest = [](const std::vector<RunSummary>& family) {
    return std::max_element(family.begin(), family.end(),
                            [](const auto& a, const auto& b) { return a.id < b.id; })
        ->id;
  };
  std::vector<std::vector<RunSummary>> ordered;
  for (auto& [key, family] : families) ordered.push_back(std::move(family));
  std::sort(ordered.begin(), ordered.end(),
            [&](const auto& a, const auto& b) { return newest(a) > newest(b); });
  Report report{database, now_text(), "zerolab " + detect_environment().commit, {}, {}};
  for (auto& family : ordered) report.scenarios.push_back(collect_scenario(store, family));
  report.environments = collect_environments(store, runs);
  return report;
}

}  // namespace zl
