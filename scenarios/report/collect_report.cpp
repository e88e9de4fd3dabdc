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
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "results/checked_row.h"
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

struct StoredRun {
  RunSummary summary;
  RunResult result;
  Environment environment;
  std::string family;  // the scenario without strategies and name: what runs side by side share
};

std::string family_of(Store& store, const std::string& database, const std::string& hash) {
  const RowName row{database, "scenarios", hash};
  try {
    Json json = parse_json(store.scenario_json(hash), "its text");
    if (!json.is_object()) throw Error(ErrorCode::invalid, "is not an object");
    json.erase("strategies");
    json.erase("name");
    return to_text(json);
  } catch (const Error& error) {
    throw damaged_row(row, "json", error.what());
  }
}

// Everything of the runs that can be read; the others are passed over, and said.
std::vector<StoredRun> read_runs(Store& store, const std::string& database,
                                 const std::vector<RunSummary>& chosen) {
  std::vector<StoredRun> runs;
  for (const RunSummary& run : chosen) {
    try {
      runs.push_back({run, store.load(run.id), store.environment(run.id),
                      family_of(store, database, run.scenario_hash)});
      runs.back().result.run_id = run.id;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid) throw;
      log_warning("run " + std::to_string(run.id) + " is passed over: " + error.what());
    }
  }
  if (!runs.empty()) return runs;
  throw Error(ErrorCode::invalid, database + ": no run of it can be read; restore a copy");
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

ReportScenario collect_scenario(Store& store, std::vector<StoredRun> runs) {
  std::sort(runs.begin(), runs.end(), [](const StoredRun& left, const StoredRun& right) {
    const RunSummary &a = left.summary, &b = right.summary;
    return std::tie(a.strategy, a.scenario_hash, a.backend) <
           std::tie(b.strategy, b.scenario_hash, b.backend);
  });
  ReportScenario out;
  out.name = runs[0].summary.scenario_name;
  std::map<std::string, std::int64_t> needed;  // by scenario hash
  for (StoredRun& stored : runs) {
    const RunSummary& run = stored.summary;
    const auto [found, first] = needed.try_emplace(run.scenario_hash, 0);
    if (first) found->second = add_step(store, run, out);
    ReportRun& row = out.runs.emplace_back();
    row.result = std::move(stored.result);
    row.saved_at = run.saved_at;
    row.scenario_hash = run.scenario_hash;
    const std::int64_t stored_need = row.result.need.reserved;  // 0: of an older version
    if (run.outcome == Outcome::out_of_memory) {
      row.needed = stored_need > 0 ? stored_need : found->second;
    }
  }
  return out;
}

std::vector<ReportEnvironment> collect_environments(std::vector<StoredRun>& runs) {
  std::sort(runs.begin(), runs.end(),
            [](const StoredRun& a, const StoredRun& b) { return a.summary.id < b.summary.id; });
  std::vector<ReportEnvironment> out;
  for (const StoredRun& run : runs) {
    const std::string& saved_at = run.summary.saved_at;
    auto found = std::find_if(out.begin(), out.end(), [&](const ReportEnvironment& each) {
      return each.environment == run.environment;
    });
    if (found == out.end()) found = out.insert(out.end(), {run.environment, {}, saved_at, {}});
    found->runs.push_back(run.summary.id);
    found->last = saved_at;
  }
  return out;
}

}  // namespace

Report collect_report(Store& store, const std::string& database, const ReportFilter& filter) {
  Report report{database, now_text(), "zerolab " + detect_environment().commit, {}, {}};
  std::vector<StoredRun> runs = read_runs(store, database, select_runs(store, database, filter));
  report.environments = collect_environments(runs);
  std::map<std::string, std::vector<StoredRun>> families;
  for (StoredRun& run : runs) {
    const std::string family = run.family;
    families[family].push_back(std::move(run));
  }
  std::vector<std::vector<StoredRun>> ordered;
  for (auto& [key, family] : families) ordered.push_back(std::move(family));
  // Runs are in the order of their ids.
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.back().summary.id > b.back().summary.id; });
  for (auto& family : ordered) {
    report.scenarios.push_back(collect_scenario(store, std::move(family)));
  }
  return report;
}

}  // namespace zl
