// DeepSpeed: a plan as its JSON, release 0.19.8. It is read back by the import of
// scenarios/deepspeed.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/launch/launch_file.h"

namespace zl {

LaunchFile write_deepspeed(const Strategy& strategy, const LaunchFacts& facts);

}  // namespace zl
