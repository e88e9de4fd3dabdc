#include "scenarios/cli/validate_meshes.h"

#include <map>
#include <set>

#include "core/base/error.h"
#include "scenarios/cli/progress.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/standing.h"
#include "scenarios/planner/why.h"

namespace zl::cli {
namespace {

constexpr std::int64_t kFewestRanks = 64;

PlanRequest request_of(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategies.front().strategy;
  PlanRequest request;
  request.scenario = plan_scenario(Document::parse(canonical_json(scenario), scenario.name));
  request.global_batch = tokens_per_step(scenario, strategy) / scenario.run.sequence_length;
  return request;
}

std::string strategy_text(const Strategy& strategy, std::int64_t ranks) {
  std::string text = mesh_text(strategy, ranks);
  if (strategy.pipeline.virtual_stages > 1) {
    text += " x" + std::to_string(strategy.pipeline.virtual_stages);
  }
  text += ", ZeRO " + std::to_string(strategy.zero.stage) + ", micro-batch " +
          std::to_string(strategy.micro_batch);
  const std::string recompute = recompute_text(strategy.recompute);
  return recompute == "none" ? text : text + ", recompute " + recompute;
}

// Runs of one model on the same GPUs are held against the same plans.
class Fields {
 public:
  const PlanField& of(const Scenario& scenario) {
    const PlanRequest request = request_of(scenario);
    const std::string key =
        content_hash(request.scenario) + " " + std::to_string(request.global_batch);
    const auto found = fields_.find(key);
    if (found != fields_.end()) return found->second;
    return fields_.emplace(key, plan_field(request)).first->second;
  }

 private:
  std::map<std::string, PlanField> fields_;
};

std::vector<Cell> row_of(const PublishedRun& run, const Scenario& scenario, Fields& fields) {
  const ImportedStrategy& own = scenario.strategies.front();
  const std::int64_t ranks = scenario.run.ranks;
  std::vector<Cell> row{run.id, ranks, scenario.run.software, strategy_text(own.strategy, ranks)};
  try {
    const PlanField& field = fields.of(scenario);
    const Standing standing = standing_of(field, scenario, own);
    row.insert(row.end(), {standing.step_seconds, std::string(standing.fits ? "yes" : "no"),
                           strategy_text(field.best.strategy, ranks), field.best_seconds,
                           standing.of_best, standing.share_faster});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::infeasible && error.code() != ErrorCode::invalid) throw;
    row.insert(row.end(), {Cell(), Cell(), std::string(error.what()), Cell(), Cell(), Cell()});
  }
  return row;
}

}  // namespace

Table meshes_table(std::span<const PublishedRun> runs, const std::string& software) {
  Table table{{{"run", Align::left},
               {"GPUs"},
               {"software", Align::left},
               {"chosen", Align::left},
               {"step", Align::right, Unit::seconds},
               {"fits", Align::left},
               {"best plan", Align::left},
               {"its step", Align::right, Unit::seconds},
               {"times the best"},
               {"plans faster", Align::right, Unit::fraction}},
              {}};
  ProgressBar bar("published meshes", static_cast<std::int64_t>(runs.size()));
  std::set<std::string> seen;  // a run that was measured in two quantities is one
  std::int64_t done = 0;
  Fields fields;
  for (const PublishedRun& run : runs) {
    bar.update_if_slow(++done);
    const Expressed expressed = express(run, software);
    if (!expressed.scenario || expressed.scenario->run.ranks < kFewestRanks) continue;
    if (!seen.insert(content_hash(*expressed.scenario)).second) continue;
    table.rows.push_back(row_of(run, *expressed.scenario, fields));
  }
  return table;
}

}  // namespace zl::cli
