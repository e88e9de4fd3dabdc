// Why a strategy does not fit, in words: how much it needs, how much there is, who holds most.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/run/simulate.h"

namespace zl {

// Of a recording without any limit whose bytes in use are more than the limits: of the device, of
// `host_budget`, or of the rank's share of its machine. `need`: as memory_need() has it.
std::string shortage_text(const Recording& unlimited, const DeviceProperties& device,
                          std::int64_t host_budget, const MemoryNeed& need);

}  // namespace zl
