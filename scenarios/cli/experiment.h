// Runs strategies of one scenario and stores each result as soon as it is there.
// Ownership: owns the scenario and the connection to the database; refers to the runner. Threads:
// the main thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/base/error.h"
#include "results/environment.h"
#include "results/store.h"
#include "scenarios/cli/options.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/skipped_steps.h"

namespace zl::cli {

// How runs of one scenario or several ended, besides their outcomes.
struct Ending {
  bool interrupted = false;
  std::optional<ErrorCode> not_stored = {};  // why
};

// 130 when interrupted, else 1 when a run failed, else why one could not be stored (3: the database
// is damaged), else 4 when none fits, or not every one does that must, else 0.
int exit_code(const Ending& ending, std::span<const RunResult> results, bool require_fit);

class Experiment {
 public:
  // Opens the database, so that one that cannot be written is refused before the first step.
  // `says_notes`: what strategy files leave open is said aloud.
  Experiment(const Runner& runner, Scenario scenario, const DatabaseOptions& database,
             bool says_notes = true);

  const Scenario& scenario() const { return scenario_; }
  const Environment& environment() const { return environment_; }
  bool interrupted() const { return stop_.load(); }

  // Prints nothing: see announce(). A failure of the machine is a result (`failed`), and a run that
  // Ctrl-C cut short is `interrupted`, stored with its steps. Throws Error for an invalid scenario
  // or data and for a backend that cannot be used. hooks.stop is set here, and hooks.overflows of a
  // recording.
  RunResult run(const ImportedStrategy& strategy, const std::string& backend, RunHooks hooks);

  void add_to(Ending& ending) const;
  int exit_code(std::span<const RunResult> results) const;  // of its runs alone

 private:
  void store(RunResult& result, const ImportedStrategy& strategy);

  const Runner& runner_;
  Scenario scenario_;
  Environment environment_;
  std::optional<Store> store_;
  std::filesystem::path database_;
  RunLabels labels_;
  SkippedSteps skipped_;
  std::optional<ErrorCode> not_stored_;
  const std::atomic<bool>& stop_;
};

// The warnings of a result, and why it is not ok, on stderr.
void announce(const RunResult& result);

}  // namespace zl::cli
