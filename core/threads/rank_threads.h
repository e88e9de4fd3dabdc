// The threads of one process's ranks, and a word about those that do not end after a failure.
// Ownership: nothing outlives the call. Threads: `work` runs on one thread per rank.
#pragma once

#include <chrono>
#include <functional>

#include "core/threads/failures.h"

namespace zl {

// Calls work(rank) for each rank on a thread of its own and returns when all have returned. A
// thread cannot be ended from outside: when ranks go on for `patience` after a failure of another,
// in a file that does not answer perhaps, a warning names them.
void run_on_threads(int ranks, const Failures& failures, std::chrono::milliseconds patience,
                    const std::function<void(int rank)>& work);

}  // namespace zl
