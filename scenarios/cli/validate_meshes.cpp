#include "scenarios/cli/validate_meshes.h"

#include <map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "scenarios/cli/progress.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/standing.h"
#include "scenarios/planner/why.h"

namespace zl::cli {
namespace {

constexpr std::int64_t kFewestRanks = 64;
// Of the plans: what is not among them is explained.
constexpr double kBestShare = 0.1;
// Of the best plan's step: what is faster was not found, and is explained as well.
constexpr double kAsGood = 0.99;

PlanRequest request_of(const Scenario& scenario) {
  const Strategy& strategy = scenario.strategies.front().strategy;
  PlanRequest request;
  request.scenario = plan_scenario(Document::parse(canonical_json(scenario), scenario.name));
  request.global_batch = tokens_per_step(scenario, strategy) / scenario.run.sequence_length;
  request.limits = parse_limits(strategy.offload.any() ? "" : "offload=none");
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

// The fastest of the runs that ask the same.
struct Question {
  const PublishedRun* run = nullptr;
  Scenario scenario;
  double seconds = 0;     // of a token, as measured
  std::int64_t runs = 0;  // that ask it
};

// Whose batch is not stated, asks for the most tokens a second.
std::string key_of(const PublishedRun& run, const Scenario& scenario) {
  Scenario alike = scenario;
  alike.name.clear();
  alike.strategies.resize(1);
  alike.strategies.front() = {};
  alike.run.micro_batch = alike.run.gradient_accumulation = 0;
  return content_hash(alike) + " " + run.row.at("global_batch");
}

bool is_large(const PublishedRun& run) {
  return !is_memory(run) && integer_in(run.row.at("n_gpus")).value_or(0) >= kFewestRanks;
}

// In the order of their first runs.
std::vector<Question> questions_of(std::span<const PublishedRun> runs, const std::string& software,
                                   std::map<std::string, std::int64_t>& why_not) {
  std::vector<Question> questions;
  std::map<std::string, std::size_t> places;
  for (const PublishedRun& run : runs) {
    if (!is_large(run)) continue;
    Expressed expressed = express(run, software);
    if (!expressed.scenario) {
      ++why_not[expressed.why_not];
      continue;
    }
    const Scenario& scenario = *expressed.scenario;
    const auto tokens =
        static_cast<double>(tokens_per_step(scenario, scenario.strategies.front().strategy));
    const double seconds = expressed.seconds / tokens;
    const auto [place, is_new] = places.try_emplace(key_of(run, scenario), questions.size());
    if (is_new) questions.emplace_back();
    Question& question = questions[place->second];
    ++question.runs;
    if (!is_new && seconds >= question.seconds) continue;
    question.run = &run;
    question.scenario = std::move(*expressed.scenario);
    question.seconds = seconds;
  }
  return questions;
}

std::vector<Cell> row_of(const Question& question) {
  const Scenario& scenario = question.scenario;
  const ImportedStrategy& own = scenario.strategies.front();
  const std::int64_t ranks = scenario.run.ranks;
  std::vector<Cell> row{question.run->id, question.runs, ranks, scenario.run.software,
                        strategy_text(own.strategy, ranks)};
  try {
    const PlanField field = plan_field(request_of(scenario));
    const Standing standing = standing_of(field, scenario, own);
    row.insert(row.end(),
               {standing.chosen.result.step_time.median, std::string(name_of(standing.fits)),
                strategy_text(field.best.strategy.strategy, ranks),
                field.best.result.step_time.median, standing.of_best, standing.share_faster});
    row.emplace_back(static_cast<std::int64_t>(field.others.size()));
    const bool explains = standing.share_faster > kBestShare || standing.of_best < kAsGood;
    row.push_back(explains ? Cell(standing_text(field, standing)) : Cell());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::infeasible && error.code() != ErrorCode::invalid) throw;
    row.insert(row.end(), {Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell()});
    row.emplace_back(std::string(error.what()));
  }
  return row;
}

}  // namespace

JudgedMeshes judged_meshes(std::span<const PublishedRun> runs, const std::string& software) {
  JudgedMeshes out;
  out.meshes = {{{"run", Align::left},
                 {"of"},
                 {"GPUs"},
                 {"software", Align::left},
                 {"chosen", Align::left},
                 {"step", Align::right, Unit::seconds},
                 {"fits", Align::left},
                 {"best plan", Align::left},
                 {"its step", Align::right, Unit::seconds},
                 {"times the best"},
                 {"plans faster", Align::right, Unit::fraction},
                 {"of plans"},
                 {"why", Align::left, Unit::none, true}},
                {}};
  out.not_judged = {{{"not judged because", Align::left}, {"runs"}}, {}};
  std::map<std::string, std::int64_t> why_not;
  const std::vector<Question> questions = questions_of(runs, software, why_not);
  ProgressBar bar("published meshes", static_cast<std::int64_t>(questions.size()));
  std::int64_t done = 0;
  for (const Question& question : questions) {
    out.meshes.rows.push_back(row_of(question));
    bar.update_if_slow(++done);
  }
  for (const auto& [why, count] : why_not) out.not_judged.rows.push_back({why, count});
  return out;
}

}  // namespace zl::cli
