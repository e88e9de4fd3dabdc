// Runs one strategy of a scenario on one backend: the composition root. The command line, the
// dashboard, tests and benchmarks call this, or the planner over it, and nothing deeper. Ownership:
// a Runner owns the backend registry. Threads: run() blocks and may be called from any thread;
// several runs may be under way at once.
#pragma once

#include <string>

#include "core/device/world.h"
#include "core/train/run_result.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/run_hooks.h"

namespace zl {

class Runner {
 public:
  Runner();

  const BackendRegistry& backends() const { return registry_; }

  // Out of memory is a result. Throws Error: invalid scenario or data, backend unavailable,
  // failures of the machine. When hooks.stop ends the run early the result holds the steps that
  // were taken.
  RunResult run(const Scenario& scenario, const ImportedStrategy& strategy,
                const std::string& backend, const RunHooks& hooks = {}) const;

 private:
  BackendRegistry registry_;
};

}  // namespace zl
