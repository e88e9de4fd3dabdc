// Whether a strategy fits: the one judge of simulated runs, of searches and of the dashboard. Where
// it is known what the software itself would hold (software_bytes.h), that decides of the device.
// Ownership: values; a recording is shared and immutable. Threads: pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "scenarios/run/simulate.h"
#include "scenarios/run/software_bytes.h"

namespace zl {

struct Verdict {
  std::shared_ptr<const Recording> recording;  // null: the strategy does not fit
  std::string refusal;                         // then: what the pool says, or the prediction
  MemoryNeed need = {};                        // of a prediction that refused
  HeldBySoftware held = {};                    // by the software itself, where that is known

  bool fits() const { return recording != nullptr; }
};

// The first half: where it is known what the software would hold, that decides of the device.
struct DeviceVerdict {
  std::optional<SoftwareBytes> bytes;
  std::string refusal;        // the bar of its bytes lies above the memory; empty: it does not
  MemoryNeed need;            // then
  DeviceProperties of_pools;  // the limits that pools are left to judge by

  HeldBySoftware held() const { return bytes ? bytes->of_device() : HeldBySoftware(); }
};
DeviceVerdict judge_device(const Scenario& scenario, const Strategy& strategy,
                           const DeviceProperties& device);

// 0: no limit.
inline bool within_limit(std::int64_t bytes, std::int64_t limit) {
  return limit == 0 || bytes <= limit;
}

// The device of a rank of a simulated run, its memory no more than the scenario may use.
DeviceProperties simulated_device(const Scenario& scenario, const sim::ClusterSpec& cluster);

// Records the strategy within device.memory, device.host_memory and options.host_memory (0: no
// limit). It fits when no pool refuses and, under software of which that is known, when the bar of
// its bytes does not lie above the memory of the device, which no pool judges then.
Verdict judge(const Scenario& scenario, const Strategy& strategy, const DeviceProperties& device,
              const ProgramOptions& options);

// What a strategy that was recorded without limits takes of memory; where slabs leave much of what
// they reserve unused, the least device memory that judge() accepts instead (within a 64th of what
// is in use), as pools take smaller slabs where memory ends.
MemoryNeed memory_need(const Recording& unlimited);

// What judge() would say, as far as the recording without any limit shows: yes when no pool came so
// near to a limit that it would have done anything else, no when the bytes in use were too many.
// Nothing in between, where only a recording within the limits tells. `host_budget`:
// options.host_memory.
std::optional<bool> foreseen(const RunResult& unlimited, const DeviceProperties& device,
                             std::int64_t host_budget);

}  // namespace zl
