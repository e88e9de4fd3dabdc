// The bucket that gradients of several parameters share is no larger than all that a rank has: a
// recording of a short model is read as one of a longer model.
// Ownership: a value. Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/trace/trace.h"

namespace zl::sim {

struct SharedBucket {
  std::int64_t recorded = 0, read = 0;  // bytes; 0: as recorded

  // Of device memory.
  std::int64_t change_of(const TraceEvent& event) const;
};

// Of two recordings the bucket that differs.
SharedBucket shared_bucket(const Trace& recorded, const Trace& longer);

}  // namespace zl::sim
