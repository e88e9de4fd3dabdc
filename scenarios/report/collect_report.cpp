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
#include "results/damaged_row.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/report/published_section.h"
#include "scenarios/report/report_facts.h"
#include "scenarios/report/report_step.h"
#include "simulator/json/reading.h"
#include "simulator/ratio.h"

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

bool is_over(const RunSummary& run) {
  return run.outcome != Outcome::failed && run.outcome != Outcome::interrupted;
}

std::vector<RunSummary> named_runs(Store& store, const std::string& database,
                                   const ReportFilter& filter) {
  if (!filter.runs.empty()) return store.list({.ids = filter.runs});
  std::vector<RunSummary> runs = store.list({.tag = filter.tag});
  if (runs.empty()) {
    throw Error(ErrorCode::invalid, database + ": no run has the tag \"" + filter.tag +
                                        "\"; `zerolab runs` lists runs with their tags");
  }
  std::reverse(runs.begin(), runs.end());
  return runs;
}

// The newest run of each scenario, strategy and backend that came to its end, else the newest.
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
  std::map<std::tuple<std::string, std::string, std::string, std::string>, RunSummary> chosen;
  for (const RunSummary& run : all) {
    const auto& wanted = filter.strategies;
    const bool named =
        wanted.empty() || std::find(wanted.begin(), wanted.end(), run.strategy) != wanted.end();
    if (!named || (!filter.scenario.empty() && filter.scenario != run.scenario_name)) continue;
    const auto [found, first] =
        chosen.try_emplace({run.scenario_hash, run.scenario_name, run.strategy, run.backend}, run);
    if (!first && !is_over(found->second) && is_over(run)) found->second = run;
  }
  std::vector<RunSummary> runs;
  for (const auto& [key, run] : chosen) runs.push_back(run);
  return runs;
}

struct StoredRun {
  RunSummary summary;
  RunResult result;
  Environment environment;
  std::string configuration;  // JSON of the scenario
  // Its name, and the scenario without strategies, name and software: what runs side by side share.
  std::string family;
};

std::string family_of(const std::string& configuration, const RunSummary& run,
                      const std::string& database) {
  try {
    Json json = parse_json(configuration, "its text");
    if (!json.is_object()) throw Error(ErrorCode::invalid, "is not an object");
    json.erase("strategies");
    json.erase("name");
    if (json.contains("run") && json["run"].is_object()) json["run"].erase("software");
    return run.scenario_name + "\n" + to_text(json);
  } catch (const Error& error) {
    throw damaged_row({database, "scenarios", run.scenario_hash}, "json", error.what());
  }
}

// Everything of the runs that can be read; the others are passed over, and said.
std::vector<StoredRun> read_runs(Store& store, const std::string& database,
                                 const std::vector<RunSummary>& chosen) {
  std::vector<StoredRun> runs;
  for (const RunSummary& run : chosen) {
    try {
      const std::string configuration = store.scenario_json(run.scenario_hash);
      runs.push_back({run, store.load(run.id), store.environment(run.id), configuration,
                      family_of(configuration, run, database)});
      runs.back().result.run_id = run.id;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid) throw;
      log_warning("run " + std::to_string(run.id) + " is passed over: " + error.what());
    }
  }
  if (!runs.empty()) return runs;
  throw Error(ErrorCode::invalid, database + ": no run of it can be read; restore a copy");
}

struct Simulated {
  ReportStep step;
  std::int64_t needed = 0, capacity = 0;  // bytes of the device; 0: unknown
};

// What the stored scenario of a run says when it is simulated now.
Simulated simulated_now(const StoredRun& run) {
  Simulated out;
  try {
    const Scenario scenario = scenario_from_json(run.configuration, run.summary.scenario_name);
    out.capacity = memory_budget(scenario, scenario_cluster(scenario));
    const Replay simulated = replay(scenario, scenario.strategies.at(0));
    out.step = last_step(scenario, simulated);
    out.needed = simulated.needed();
  } catch (const std::exception& error) {  // of another version, or on a cluster that is gone
    out.step.problem = error.what();
  }
  return out;
}

const NamedFact* fact_of(const NameWithFacts& row, const std::string& what) {
  const auto found = std::find_if(row.facts.begin(), row.facts.end(),
                                  [&](const NamedFact& fact) { return fact.what == what; });
  return found == row.facts.end() ? nullptr : &*found;
}

// What all rows share becomes a fact of the scenario, the rest one of each row.
void share_facts(const std::vector<NameWithFacts>& named, ReportScenario& out) {
  std::vector<std::string> kinds;
  for (const NameWithFacts& row : named) {
    for (const NamedFact& fact : row.facts) {
      if (std::find(kinds.begin(), kinds.end(), fact.what) == kinds.end()) {
        kinds.push_back(fact.what);
      }
    }
  }
  for (const std::string& what : kinds) {
    const NamedFact* first = fact_of(named.front(), what);
    const bool all = std::all_of(named.begin(), named.end(), [&](const NameWithFacts& row) {
      const NamedFact* fact = fact_of(row, what);
      return fact != nullptr && first != nullptr && fact->value == first->value;
    });
    if (all && !first->value.empty()) out.facts.emplace_back(what, first->value);
    for (std::size_t i = 0; !all && i < named.size(); ++i) {
      const NamedFact* fact = fact_of(named[i], what);
      if (fact != nullptr) out.runs[i].facts.emplace_back(what, fact->value);
    }
  }
}

void put_beside_fastest(std::vector<ReportRun>& runs) {
  std::vector<const RunResult*> results;
  for (const ReportRun& run : runs) results.push_back(&run.result);
  for (ReportRun& run : runs) {
    const RunResult* fastest = sim::fastest_like(run.result, results);
    const auto ratio = fastest == nullptr ? std::nullopt : sim::step_ratio(*fastest, run.result);
    if (ratio) run.beside_fastest = fastest == &run.result ? "fastest" : sim::readable(*ratio);
  }
}

ReportScenario collect_scenario(const std::string& name, std::vector<StoredRun> runs) {
  ReportScenario out;
  out.name = name;
  std::vector<FactsOfRun> known;
  for (const StoredRun& run : runs) known.push_back({run.summary, run.configuration});
  const std::vector<NameWithFacts> named = facts_of_runs(known);
  const std::vector<std::string> names = distinct_names(named);
  std::map<std::string, Simulated> simulated;  // by scenario hash
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& run = runs[i].summary;
    const auto [found, first] = simulated.try_emplace(run.scenario_hash);
    if (first) {
      found->second = simulated_now(runs[i]);
      out.steps.push_back(std::move(found->second.step));
      out.steps.back().strategy = names[i];
    }
    ReportRun& row = out.runs.emplace_back();
    row.result = std::move(runs[i].result);
    row.saved_at = run.saved_at;
    row.scenario_hash = run.scenario_hash;
    row.name = names[i];
    row.tags = run.tags;
    const std::int64_t stored = row.result.device_capacity;  // 0: of an older version, or no limit
    row.capacity = stored > 0 ? stored : found->second.capacity;
    const std::int64_t stored_need = row.result.need.reserved;
    if (run.outcome == Outcome::out_of_memory) {
      row.needed = stored_need > 0 ? stored_need : found->second.needed;
    }
  }
  share_facts(named, out);
  put_beside_fastest(out.runs);
  const std::int64_t capacity = out.runs.front().capacity;
  const bool same = std::all_of(out.runs.begin(), out.runs.end(), [capacity](const ReportRun& run) {
    return run.capacity == capacity;
  });
  if (same) out.capacity = capacity;
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

// Those that are side by side, the one that ran last first; runs are in the order of their ids.
std::vector<std::vector<StoredRun>> families_of(std::vector<StoredRun> runs) {
  std::map<std::string, std::vector<StoredRun>> families;
  for (StoredRun& run : runs) {
    const std::string family = run.family;
    families[family].push_back(std::move(run));
  }
  std::vector<std::vector<StoredRun>> ordered;
  for (auto& [key, family] : families) ordered.push_back(std::move(family));
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.back().summary.id > b.back().summary.id; });
  for (auto& family : ordered) {
    std::sort(family.begin(), family.end(), [](const StoredRun& left, const StoredRun& right) {
      const RunSummary &a = left.summary, &b = right.summary;
      return std::tie(a.strategy, a.scenario_hash, a.backend) <
             std::tie(b.strategy, b.scenario_hash, b.backend);
    });
  }
  return ordered;
}

}  // namespace

Report collect_report(Store& store, const std::string& database, const ReportFilter& filter) {
  Report report{database, now_text(), "zerolab " + detect_environment().commit, {}, {}};
  const bool named = !filter.runs.empty() || !filter.tag.empty();
  std::vector<StoredRun> runs =
      read_runs(store, database,
                named ? named_runs(store, database, filter) : select_runs(store, database, filter));
  std::vector<StoredRun> by_id = runs;
  report.environments = collect_environments(by_id);
  if (named) {
    const std::string title = filter.runs.empty() ? "Runs tagged " + filter.tag : "Chosen runs";
    report.scenarios.push_back(collect_scenario(title, std::move(runs)));
    return report;
  }
  std::vector<std::vector<StoredRun>> families = families_of(std::move(by_id));
  std::vector<FactsOfRun> firsts;
  for (const auto& family : families) {
    firsts.push_back({family.front().summary, family.front().configuration});
  }
  const std::vector<std::string> names = distinct_names(facts_of_scenarios(firsts));
  for (std::size_t i = 0; i < families.size(); ++i) {
    report.scenarios.push_back(collect_scenario(names[i], std::move(families[i])));
  }
  const bool is_whole = filter.scenario.empty() && filter.strategies.empty();
  if (is_whole) report.published = published_section(store.published());
  return report;
}

}  // namespace zl
