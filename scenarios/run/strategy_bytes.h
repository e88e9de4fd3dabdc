// What the software of a simulated run would hold of a strategy as it is written, its automatic
// recomputation decided first. Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/run/software_bytes.h"

namespace zl {

// As bytes_or_why().
SoftwareBytesOrWhy software_bytes_or_why(const Scenario& scenario, const Strategy& strategy);
std::optional<SoftwareBytes> software_bytes(const Scenario& scenario, const Strategy& strategy);

}  // namespace zl
