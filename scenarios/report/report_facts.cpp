#include "scenarios/report/report_facts.h"

#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/configuration.h"

namespace zl {
namespace {

std::string count_text(std::int64_t count) { return count != 0 ? std::to_string(count) : ""; }

std::vector<NamedFact> scenario_facts(const RunSummary& run) {
  std::vector<NamedFact> facts{{"model", run.model, run.model},
                               {"cluster", run.cluster, run.cluster}};
  const auto add = [&facts](const char* what, const std::string& value) {
    facts.push_back({what, value, std::string(what) + " " + value});
  };
  add("ranks", std::to_string(run.ranks));
  add("sequence length", count_text(run.sequence_length));
  add("data", run.data);
  add("steps", count_text(run.planned_steps));
  return facts;
}

std::vector<NamedFact> row_facts(const RunSummary& run) {
  std::vector<NamedFact> facts = scenario_facts(run);
  const std::string software = run.software.empty() ? "zerolab" : run.software;
  facts.push_back({"software", software, run.software.empty() ? "" : "as " + software});
  facts.push_back({"precision", run.precision, run.precision});
  const std::string micro = count_text(run.micro_batch);
  const std::string accumulation = count_text(run.gradient_accumulation);
  facts.push_back({"micro-batch", micro, "micro-batch " + micro});
  facts.push_back({"gradient accumulation", accumulation, "accumulation " + accumulation});
  facts.push_back({"tokens a step", count_text(run.tokens_per_step()), ""});
  return facts;
}

// Adds the other keys in which those are configured differently that nothing else tells apart.
void add_other_keys(const std::vector<FactsOfRun>& runs, bool of_strategies,
                    std::vector<NameWithFacts>& named) {
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string key = named[i].group + "\n" + named[i].name;
    for (const NamedFact& fact : named[i].facts) key += "\n" + fact.value;
    alike[key].push_back(i);
  }
  for (const auto& [same, members] : alike) {
    std::map<std::string, std::map<std::size_t, std::string>> values;  // by key, of a member
    std::map<std::string, std::string> of_first;
    for (const std::size_t i : members) {
      for (const ConfigurationDifference& each :
           configuration_differences(runs[members[0]].configuration, runs[i].configuration)) {
        if (!of_strategies && each.key.starts_with("strategy.")) continue;
        values[each.key][i] = each.b;
        of_first[each.key] = each.a;
      }
    }
    for (const auto& [key, differing] : values) {
      for (const std::size_t i : members) {
        const auto found = differing.find(i);
        const std::string value = found == differing.end() ? of_first[key] : found->second;
        named[i].facts.push_back({key, value, key + " " + shortened(value)});
      }
    }
  }
}

}  // namespace

std::vector<NameWithFacts> facts_of_runs(const std::vector<FactsOfRun>& runs) {
  std::vector<NameWithFacts> named;
  for (const auto& [run, configuration] : runs) {
    // The backend stands beside the name.
    named.push_back({run.strategy, row_facts(run), "run " + std::to_string(run.id), run.backend});
  }
  add_other_keys(runs, true, named);
  return named;
}

std::vector<NameWithFacts> facts_of_scenarios(const std::vector<FactsOfRun>& scenarios) {
  std::vector<NameWithFacts> named;
  for (const auto& [run, configuration] : scenarios) {
    named.push_back({run.scenario_name, scenario_facts(run), "run " + std::to_string(run.id)});
  }
  add_other_keys(scenarios, false, named);
  return named;
}

}  // namespace zl
