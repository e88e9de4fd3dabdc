// The data side of a collective among ranks that share memory.
// Ownership: nothing. Threads: called by every rank of the meeting at once.
#pragma once

#include "core/threads/thread_group.h"

namespace zl::cpu {

// The part of `total` elements that a rank reduces for all, cut at cache lines.
struct Share {
  std::int64_t begin, end;
};
Share share_of(std::int64_t total, int rank, int ranks);

// This rank's part; done for everybody when all ranks have returned. Returns the bytes that it has
// read from or written to tensors of other ranks. threads: of the caller's team, for the copies of
// a rank alone.
std::int64_t move_data(const ThreadGroup::Calls& calls, int rank, int threads = 1);

}  // namespace zl::cpu
