// Leaving one stack for another: what fibers are made of. A few instructions where the processor is
// known, the C library's contexts elsewhere and under AddressSanitizer, which has to be told.
// Ownership: refers to the stacks. Threads: a context is used by one thread at a time.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__)
#define ZL_SLOW_SWITCH
#include <ucontext.h>
#endif

namespace zl::cuda::host {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kStack = 512 * 1024;
#else
inline constexpr std::size_t kStack = 128 * 1024;
#endif

class Context {
 public:
  // The first switch to it calls entry() on that stack of kStack bytes; entry() never returns.
  void prepare(std::byte* stack, void (*entry)());
  // Leaves this stack for that of `to`, until somebody switches back. is_last: nobody will.
  void switch_to(Context& to, bool is_last = false);
  // The first thing that entry() does; `from` is where it was switched to from.
  static void arrive(Context& from);

 private:
#ifdef ZL_SLOW_SWITCH
  ucontext_t context_{};
#else
  void* top_ = nullptr;
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
#endif
};

}  // namespace zl::cuda::host
