#include "scenarios/planner/plan_shortage.h"

#include "scenarios/planner/shortage.h"
#include "scenarios/run/judge.h"

namespace zl {
std::string plan_shortage(const Scenario& scenario, const sim::ClusterSpec& cluster,
                          const ImportedStrategy& smallest) {
  const DeviceProperties device = simulated_device(scenario, cluster);
  DeviceProperties unlimited = device;
  unlimited.memory = unlimited.host_memory = 0;
  ProgramOptions options = program_options(scenario);
  options.device_memory = options.host_memory = 0;
  const Recording recording = record_run(scenario, smallest.strategy, unlimited, options);
  const MemoryNeed need = memory_need(recording);
  return "the smallest plan is " + smallest.strategy.name + ": it " +
         shortage_text(recording, device, scenario.run.host_memory, need);
}

}  // namespace zl
