#include "scenarios/cli/experiment.h"

#include <algorithm>
#include <set>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/cli/interrupt.h"
#include "scenarios/cli/notes.h"
#include "scenarios/cli/output.h"
#include "scenarios/run/live_report.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/stored_run.h"

namespace zl::cli {
Experiment::Experiment(const Runner& runner, Scenario scenario, const DatabaseOptions& database,
                       bool says_notes)
    : runner_(runner),
      scenario_(std::move(scenario)),
      environment_(detect_environment()),
      stop_(stop_on_interrupt()) {
  for (const std::string& tag : database.tags) require_name(tag, "--tag");
  labels_.tags = join(database.tags, " ");
  if (database.is_used()) {
    database_ = database.path();
    store_ = Store::open(database_, Store::Mode::read_write);
  }
  if (!says_notes) return;
  for (const ImportedStrategy& strategy : scenario_.strategies) say_notes(strategy);
}

RunResult Experiment::run(const ImportedStrategy& strategy, const std::string& backend,
                          RunHooks hooks) {
  hooks.stop = &stop_;
  std::optional<LiveReport> live;
  const BackendCapabilities& can = runner_.backends().capabilities(backend);
  if (store_ && !can.is_recording) {
    live.emplace(database_, LiveRun{.scenario = scenario_.name,
                                    .strategy = strategy.strategy.name,
                                    .backend = backend,
                                    .steps = scenario_.run.steps,
                                    .loss = {}});
    hooks.on_step = [&live, shown = hooks.on_step](std::int64_t step, const StepMetrics& metrics,
                                                   double seconds) {
      if (shown) shown(step, metrics, seconds);
      live->step(step, metrics.loss);
    };
  }
  if (can.is_recording) {
    hooks.overflows = skipped_.of(scenario_, strategy, store_ ? &*store_ : nullptr);
  }
  RunResult result = attempt_run(runner_, scenario_, strategy, backend, hooks);
  skipped_.add(scenario_, strategy, result);
  name_accelerator(can, environment_);
  live.reset();
  // A resumed run whose steps were all done is in the database already.
  if (store_ && (result.steps > 0 || result.outcome != Outcome::ok)) store(result, strategy);
  if (result.outcome == Outcome::interrupted && !can.is_recording && interrupted()) {
    log_info(hooks.checkpoint.folder.empty()
                 ? "its weights are gone; with --checkpoint FOLDER it could go on"
                 : "the same command with --resume goes on from there");
  }
  return result;
}

// Results that cannot be stored are still printed.
void Experiment::store(RunResult& result, const ImportedStrategy& strategy) {
  try {
    result.run_id = store_run(*store_, scenario_, strategy, result, environment_, labels_);
  } catch (const Error& error) {
    not_stored_ = error.code();
    print_error(std::string("not stored: ") + error.what());
  } catch (const std::exception& error) {
    not_stored_ = ErrorCode::failed;
    print_error(std::string("not stored: ") + error.what());
  }
}

void Experiment::add_to(Ending& ending) const {
  ending.interrupted |= interrupted();
  if (not_stored_) ending.not_stored = not_stored_;
}

int Experiment::exit_code(std::span<const RunResult> results) const {
  Ending ending;
  add_to(ending);
  return cli::exit_code(ending, results, true);
}

int exit_code(const Ending& ending, std::span<const RunResult> results, bool require_fit) {
  if (ending.interrupted) return static_cast<int>(ErrorCode::interrupted);
  const auto any = [&](auto... outcomes) {
    return std::any_of(results.begin(), results.end(), [&](const RunResult& result) {
      return ((result.outcome == outcomes) || ...);
    });
  };
  if (any(Outcome::failed)) return static_cast<int>(ErrorCode::failed);
  if (ending.not_stored) return static_cast<int>(*ending.not_stored);
  const bool refused = any(Outcome::out_of_memory, Outcome::infeasible);
  if (refused && (require_fit || !any(Outcome::ok))) {
    return static_cast<int>(ErrorCode::infeasible);
  }
  return 0;
}

namespace {

// Strategies of one scenario share most of what is said about them.
bool is_new(const std::string& warning) {
  static std::set<std::string> said;
  return said.insert(warning).second;
}

// The pool's own words, with its largest holders, are in -o json and under -v.
std::string reason(const RunResult& result) {
  const std::string need = need_text(result.need, result.device_capacity);
  if (need.empty() || result.outcome != Outcome::out_of_memory) {
    return std::string(name_of(result.outcome)) + ": " + result.message;
  }
  const std::string of =
      result.device_capacity > 0 ? " into " + format_bytes(result.device_capacity) : std::string();
  if (result.software_held.is_known()) return "does not fit" + of + ": " + result.message;
  log_debug(result.strategy + " on " + result.backend + ": " + result.message);
  return "does not fit" + of + ": it " + need;
}

}  // namespace

void announce(const RunResult& result) {
  const std::string where = result.strategy + " on " + result.backend + ": ";
  for (const std::string& warning : result.warnings) {
    if (is_new(warning)) log_warning(where + warning);
  }
  if (result.outcome == Outcome::failed) {
    print_error(where + result.message);
  } else if (result.outcome == Outcome::interrupted) {
    log_warning(where + result.message);
  } else if (result.outcome != Outcome::ok) {
    log_warning(where + reason(result));
  }
}

}  // namespace zl::cli
