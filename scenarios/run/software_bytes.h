// What the software of a simulated run would hold itself of a rank's device: a prediction, beside
// the recording's bytes, which are this core's and exact.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/files/scenario.h"
#include "simulator/cluster/software.h"
#include "simulator/held_memory.h"

namespace zl {

struct SoftwareBytes {
  std::string software;
  sim::HeldMemory held;                // of the fullest rank
  std::vector<sim::HeldMemory> ranks;  // of the pipeline, all of them
  double low = 0, high = 0;  // factors of what is held: the true one lies between, 9 times of 10

  std::int64_t least() const;  // bytes in use at the peak
  std::int64_t most() const;
};

// Under the software that the scenario's simulated runs have. None: it is this core, its profile
// says nothing of memory, or the closed form does not hold for the strategy.
std::optional<SoftwareBytes> software_bytes(const Scenario& scenario, const Strategy& strategy);

// The same, or why there is none, in words; both empty: it is this core.
struct SoftwareBytesOrWhy {
  std::optional<SoftwareBytes> bytes;
  std::string why_not;
};
SoftwareBytesOrWhy software_bytes_or_why(const Scenario& scenario, const Strategy& strategy);

}  // namespace zl
