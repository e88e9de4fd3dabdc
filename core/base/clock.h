// The clock of timings.
// Threads: any.
#pragma once

#include <chrono>
#include <cstdint>

namespace zl {

// Never goes back; its zero means nothing.
inline std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace zl
