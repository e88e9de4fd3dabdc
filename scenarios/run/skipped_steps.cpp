#include "scenarios/run/skipped_steps.h"

#include "core/base/error.h"
#include "core/base/log.h"

namespace zl {
namespace {

bool can_skip(const ImportedStrategy& strategy) {
  return strategy.strategy.precision.compute_dtype == DType::f16;
}

std::string hash_of(const Scenario& scenario, const ImportedStrategy& strategy) {
  return content_hash(with_one_strategy(scenario, strategy));
}

bool is_whole(const RunSummary& run) {
  return !run.predicted && run.outcome == Outcome::ok && run.first_step == 0;
}

std::vector<std::int64_t> stored(const std::string& hash, Store& store) {
  try {
    for (const RunSummary& run : store.list({.scenario_hash = hash})) {
      if (is_whole(run)) return overflowed_steps(store.load(run.id));
    }
  } catch (const Error& error) {
    log_warning(std::string("what executed runs skipped is not known: ") + error.what());
  }
  return {};
}

}  // namespace

void SkippedSteps::add(const Scenario& scenario, const ImportedStrategy& strategy,
                       const RunResult& run) {
  if (!can_skip(strategy) || run.predicted || run.steps == 0) return;
  added_[hash_of(scenario, strategy)] = overflowed_steps(run);
}

std::vector<std::int64_t> SkippedSteps::of(const Scenario& scenario,
                                           const ImportedStrategy& strategy, Store* store) const {
  if (!can_skip(strategy)) return {};
  const std::string hash = hash_of(scenario, strategy);
  if (const auto found = added_.find(hash); found != added_.end()) return found->second;
  return store == nullptr ? std::vector<std::int64_t>{} : stored(hash, *store);
}

}  // namespace zl
