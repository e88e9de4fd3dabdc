// accelerate: a plan as the YAML of `accelerate launch --config_file`, FSDP2 (release 1.15).
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/launch/launch_file.h"

namespace zl {

LaunchFile write_accelerate(const Strategy& strategy, const LaunchFacts& facts);

}  // namespace zl
