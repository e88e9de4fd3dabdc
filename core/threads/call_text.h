// Comparing and describing collectives, for the messages about ranks that disagree.
// Ownership: nothing. Threads: pure functions.
#pragma once

#include <string>

#include "core/threads/thread_group.h"

namespace zl {

// Whether two ranks mean the same collective: kind, op, group, and each tensor's type and counts.
bool same(const Call& a, const Call& b);

// "all_gather of 3 tensors fp32 [128, 64, 7] (group data)".
std::string describe(const Call& call);

}  // namespace zl
