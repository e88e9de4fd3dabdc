// The keys that no field of Strategy takes: fixed, moot, and details of other features.
// Ownership: none. Threads: used by one thread.
#pragma once

#include "scenarios/deepspeed/values.h"

namespace zl {

// Gives every key without a row its row.
void finish_remaining(Keys& keys);

}  // namespace zl
