// Runs one strategy of a scenario on one backend: the composition root. The command line, the
// dashboard, tests and benchmarks call this, or the planner over it, and nothing deeper. Ownership:
// a Runner owns the backend registry. Threads: run() blocks and may be called from any thread;
// several runs may be under way at once.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "core/device/world.h"
#include "core/train/rank_program.h"
#include "core/train/run_result.h"
#include "scenarios/files/scenario.h"
#include "simulator/cluster/stack.h"

namespace zl {

struct RunHooks {
  StepObserver on_step;                     // rank 0, after every step
  const std::atomic<bool>* stop = nullptr;  // ends the run after the current step
  std::function<void(Engine&)> at_end;      // on every rank, the engine still alive
  // Of real runs. The folder gets one folder per strategy; the identity is filled in.
  CheckpointConfig checkpoint = {};
  // Rank 0's trace: of all steps with timings from a real run, of kSteadySteps steps from a
  // simulated one.
  std::function<void(const Trace&)> on_trace;
};

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

// The cluster that a scenario's simulated runs are priced on.
sim::ClusterSpec scenario_cluster(const Scenario& scenario);
// A cluster by catalogue name, "NxGPU", "local", "local-cuda" or the path of a JSON file. This
// machine has the host memory that machine_memory() finds now.
sim::ClusterSpec load_cluster(const std::string& name_or_path);
// What other software reaches on a GPU, by catalogue name or the path of a JSON file.
sim::Stack load_stack(const std::string& name_or_path);
std::string stack_text(const std::string& name_or_path);
// Where `zerolab calibrate` writes what "local" means; for backend "cuda", "local-cuda".
std::string local_cluster_path(const std::string& backend = "cpu");

// Fills in `automatic` recomputation: the fewest blocks that fit device.memory beside
// device.workspace, found on the recording device; host memory counts where the device is the host.
// Leaves other modes alone.
Strategy resolve_recompute(const Scenario& scenario, Strategy strategy,
                           const DeviceProperties& device);

}  // namespace zl
