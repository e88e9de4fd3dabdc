#include "scenarios/cli/experiment.h"
#include "scenarios/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/log.h"
#include "scenarios/cli/interrupt.h"

namespace zl::cli {
namespace {

RunResult without_numbers(const Scenario& scenario, const ImportedStrategy& strategy,
                          const std::string& backend, Outcome outcome, const char* message) {
  RunResult result;
  result.strategy = strategy.strategy.name;
  result.backend = backend;
  result.ranks = static_cast<int>(scenario.run.ranks);
  result.outcome = outcome;
  result.message = message;
  return result;
}

// What a strategy file leaves open or means differently is said aloud, not only by `zerolab show`.
void say_notes(const ImportedStrategy& imported) {
  for (const Effect& effect : imported.effects) {
    const bool given = !effect.given.empty() && effect.given != "\"auto\"";
    const bool chosen = effect.key == "optimizer.type" && effect.status == EffectStatus::defaulted;
    if (!effect.why.empty() && (given || chosen)) {
      log_info(imported.strategy.name + ": " + effect.key + ": " + effect.why);
    }
  }
}

}  // namespace

Experiment::Experiment(const Runner& runner, Scenario scenario, const DatabaseOptions& database)
    : runner_(runner),
      scenario_(std::move(scenario)),
      environment_(detect_environment()),
      stop_(stop_on_interrupt()) {
  if (!database.off) store_ = Store::open(database.path(), Store::Mode::read_write);
  for (const ImportedStrategy& strategy : scenario_.strategies) say_notes(strategy);
}

RunResult Experiment::attempt(const ImportedStrategy& strategy, const std::string& backend,
                              const RunHooks& hooks) const {
  try {
    return runner_.run(scenario_, strategy, backend, hooks);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::failed && error.code() != ErrorCode::infeasible) throw;
    const bool failed = error.code() == ErrorCode::failed;
    return without_numbers(scenario_, strategy, backend,
                           failed ? Outcome::failed : Outcome::infeasible, error.what());
  } catch (const std::bad_alloc&) {
    return without_numbers(scenario_, strategy, backend, Outcome::failed, "out of host memory");
  } catch (const std::exception& error) {
    return without_numbers(scenario_, strategy, backend, Outcome::failed, error.what());
  }
}

RunResult Experiment::run(const ImportedStrategy& strategy, const std::string& backend,
                          RunHooks hooks) {
  hooks.stop = &stop_;
  RunResult result = attempt(strategy, backend, hooks);
  name_gpu(backend, environment_);
  const bool cut_short =
      interrupted() && result.outcome == Outcome::ok && result.steps < scenario_.run.steps;
  if (cut_short) {
    result.outcome = Outcome::failed;
    result.message = fmt::format("interrupted after {} of {} steps; not stored", result.steps,
                                 scenario_.run.steps);
  }
  if (store_ && !cut_short) store(result, strategy);
  return result;
}

// Results that cannot be stored are still printed.
void Experiment::store(RunResult& result, const ImportedStrategy& strategy) {
  try {
    const Scenario alone = with_one_strategy(scenario_, strategy);
    result.run_id = store_->save(result, {content_hash(alone), alone.name, canonical_json(alone)},
                                 environment_);
  } catch (const Error& error) {
    store_failed_ = true;
    log_warning(std::string("not stored: ") + error.what());
  }
}

int Experiment::exit_code(std::span<const RunResult> results) const {
  if (interrupted()) return static_cast<int>(ErrorCode::interrupted);
  const auto any = [&](auto... outcomes) {
    return std::any_of(results.begin(), results.end(), [&](const RunResult& result) {
      return ((result.outcome == outcomes) || ...);
    });
  };
  if (store_failed_ || any(Outcome::failed)) return static_cast<int>(ErrorCode::failed);
  if (any(Outcome::out_of_memory, Outcome::infeasible)) {
    return static_cast<int>(ErrorCode::infeasible);
  }
  return 0;
}

void announce(const RunResult& result) {
  const std::string where = result.strategy + " on " + result.backend + ": ";
  for (const std::string& warning : result.warnings) log_warning(where + warning);
  if (result.outcome != Outcome::ok) {
    log_warning(where + name_of(result.outcome) + ": " + result.message);
  }
}

}  // namespace zl::cli
