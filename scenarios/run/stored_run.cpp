#include "scenarios/run/stored_run.h"

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
    if (was_cut_short(scenario, result, hooks) && result.outcome == Outcome::ok) {
      result.outcome = Outcome::failed;
      result.message = "interrupted after " + std::to_string(result.first_step + result.steps) +
                       " of " + std::to_string(scenario.run.steps) + " steps; not stored";
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

bool was_cut_short(const Scenario& scenario, const RunResult& result, const RunHooks& hooks) {
  // A run that was stopped has taken at least one step; one that failed has none.
  return hooks.stop != nullptr && *hooks.stop && result.steps > 0 &&
         result.first_step + result.steps < scenario.run.steps;
}

std::int64_t store_run(Store& store, const Scenario& scenario, const ImportedStrategy& strategy,
                       const RunResult& result, const Environment& environment) {
  const Scenario alone = with_one_strategy(scenario, strategy);
  return store.save(result, {content_hash(alone), alone.name, canonical_json(alone)}, environment);
}

}  // namespace zl
