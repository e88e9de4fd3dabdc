#include "scenarios/run/stored_run.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "scenarios/run/simulate.h"

namespace zl {
namespace {

RunResult without_numbers(const Scenario& scenario, const ImportedStrategy& strategy,
                          const std::string& backend, bool predicted, Outcome outcome,
                          const char* message) {
  RunResult result;
  result.predicted = predicted;
  write_origin(scenario, strategy, backend, result);
  result.outcome = outcome;
  result.message = message;
  return result;
}

// "" of a run that went to its end.
std::string why_cut_short(const Scenario& scenario, const RunResult& result,
                          const RunHooks& hooks) {
  const auto is_set = [](const std::atomic<bool>* flag) { return flag != nullptr && *flag; };
  // A run that was stopped has taken at least one step; one that failed has none.
  const bool ended = result.outcome == Outcome::ok && result.steps > 0 &&
                     result.first_step + result.steps < scenario.run.steps;
  if (!ended || (!is_set(hooks.stop) && !is_set(hooks.enough))) return "";
  return std::string(is_set(hooks.stop) ? "interrupted" : "ended early") + " after " +
         std::to_string(result.first_step + result.steps) + " of " +
         std::to_string(scenario.run.steps) + " steps";
}

}  // namespace

RunResult attempt_run(const Runner& runner, const Scenario& scenario,
                      const ImportedStrategy& strategy, const std::string& backend,
                      const RunHooks& hooks) {
  const auto failed = [&](const char* message, Outcome outcome = Outcome::failed) {
    const bool predicted = runner.backends().capabilities(backend).is_recording;
    return without_numbers(scenario, strategy, backend, predicted, outcome, message);
  };
  try {
    RunResult result = runner.run(scenario, strategy, backend, hooks);
    if (std::string why = why_cut_short(scenario, result, hooks); !why.empty()) {
      result.outcome = Outcome::interrupted;
      result.message = std::move(why);
    }
    return result;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::infeasible) return failed(error.what(), Outcome::infeasible);
    if (error.code() == ErrorCode::failed) return failed(error.what());
    throw;
  } catch (const std::bad_alloc&) {
    return failed("out of host memory");
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}

void name_accelerator(const BackendCapabilities& backend, Environment& environment) {
  const Accelerator accelerator = backend.accelerator ? backend.accelerator() : Accelerator{};
  environment.gpu = accelerator.name;
  environment.driver = accelerator.driver;
}

bool is_worth_storing(const RunResult& result) {
  const bool ended_early =
      result.outcome == Outcome::failed || result.outcome == Outcome::interrupted;
  return result.predicted ? !ended_early : result.steps > 0;
}

std::int64_t store_run(Store& store, const Scenario& scenario, const ImportedStrategy& strategy,
                       const RunResult& result, const Environment& environment,
                       const RunLabels& labels) {
  if (!is_worth_storing(result)) return 0;
  const Scenario alone = with_one_strategy(scenario, strategy);
  return store.save(result, {content_hash(alone), alone.name, canonical_json(alone)}, environment,
                    labels);
}

std::string failure_of_all(std::span<const RunResult> results) {
  std::string kinds;
  for (const Outcome outcome : kOutcomes) {
    const auto is = [outcome](const RunResult& result) { return result.outcome == outcome; };
    const auto count = std::count_if(results.begin(), results.end(), is);
    if (count == 0) continue;
    if (outcome == Outcome::ok || outcome == Outcome::interrupted) return "";
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + name_of(outcome);
  }
  if (results.size() < 2) return "";
  const std::string all = std::to_string(results.size());
  return all + " of " + all + " failed: " + kinds;
}

}  // namespace zl
