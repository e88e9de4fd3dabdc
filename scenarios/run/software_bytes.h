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
  bool is_supported = false;           // by published runs or counts; else the bar is wide
  double low = 0, high = 0;  // factors of what is held: the true one lies between, 9 times of 10

  // The lower factor of a bar of relative errors.
  static double low_of(double error);
  std::int64_t least() const;  // bytes in use at the peak
  std::int64_t most() const;
  HeldBySoftware of_device() const { return of_device(held); }
  HeldBySoftware of_device(const sim::HeldMemory& rank) const;  // of one of the ranks
};

// Or why there is none, in words; both empty: it is this core.
struct SoftwareBytesOrWhy {
  std::optional<SoftwareBytes> bytes;
  std::string why_not;
};
// Of a strategy whose recomputation is decided, under the software that the scenario's simulated
// runs have. None: it is this core, its profile says nothing of memory, or the closed form does not
// hold for the strategy.
SoftwareBytesOrWhy bytes_or_why(const Scenario& scenario, const Strategy& resolved);

// The same under a profile that is already read, with as many ranks as the scenario has.
SoftwareBytesOrWhy bytes_under(const sim::Software& software, const Scenario& scenario,
                               const Strategy& resolved);

// The same in short.
HeldBySoftware held_by_software(const Scenario& scenario, const Strategy& resolved);

// "torch-fsdp2 would hold 92.10 GiB (88.00 GiB to 97.00 GiB), 12.10 GiB more than the
// device's 80.00 GiB, most of it in the backward of the loss".
std::string refusal_text(const Scenario& scenario, const HeldBySoftware& held,
                         std::int64_t capacity);

}  // namespace zl
