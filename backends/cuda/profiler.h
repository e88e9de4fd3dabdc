// Named ranges that profilers show (NVTX): the part of the step ("forward 3"), in it the op.
// Without a profiler they cost a few nanoseconds. Ownership: none. Threads: a range begins and ends
// on one thread.
#pragma once

// The toolkit's headers without a library; a package of its own in some distributions.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
inline void nvtxRangePushA(const char*) {}
inline void nvtxRangePop() {}
#endif

namespace zl::cuda {

class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name) { begin(name); }
  ~ProfilerRange() { end(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

  static void begin(const char* name) { nvtxRangePushA(name); }
  static void end() { nvtxRangePop(); }
};

}  // namespace zl::cuda
