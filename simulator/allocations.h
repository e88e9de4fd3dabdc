// What a recorded program allocates in one memory space, to be done again within another limit:
// the pool decides by program order alone, so the program itself need not run.
// Ownership: a value. Threads: immutable; free to use from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/trace/trace.h"

namespace zl::sim {

class Allocations {
 public:
  Allocations(const Trace& trace, MemorySpace space);

  // Whether a pool with this budget takes them all.
  bool fit(std::int64_t budget) const;

 private:
  struct Change {
    std::size_t buffer = 0;
    std::int64_t bytes = -1;  // negative: it is freed
  };

  MemorySpace space_;
  std::vector<Change> changes_;  // in program order
  std::size_t buffers_ = 0;      // live at once
};

}  // namespace zl::sim
