#include "tests/cuda_host/stack_switch.h"

#include <cstdint>

namespace zl::cuda::host {

#ifdef ZL_SLOW_SWITCH

void Context::prepare(std::byte* stack, void (*entry)()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = kStack;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
#if defined(__SANITIZE_ADDRESS__)
  bottom_ = stack;
  size_ = kStack;
#endif
}

void Context::switch_to(Context& to, [[maybe_unused]] bool is_last) {
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(is_last ? nullptr : &fake, to.bottom_, to.size_);
#endif
  swapcontext(&context_, &to.context_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Context::arrive([[maybe_unused]] Context& from) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &from.bottom_, &from.size_);
#endif
}

#else

// Keeps what a function must keep (System V ABI, x86-64) on the old stack and takes it from the
// new.
extern "C" void zl_switch_stack(void** old_top, void* new_top);
asm(R"(
.text
.type zl_switch_stack, @function
zl_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size zl_switch_stack, . - zl_switch_stack
)");

// As if entry() had been called: above its address the one it would return to.
void Context::prepare(std::byte* stack, void (*entry)()) {
  constexpr int kKept = 6;
  auto* top = reinterpret_cast<std::uintptr_t*>(stack + kStack) - 2;
  top[1] = 0;
  top[0] = reinterpret_cast<std::uintptr_t>(entry);
  for (int i = 0; i < kKept; ++i) *--top = 0;
  top_ = top;
}

void Context::switch_to(Context& to, bool) { zl_switch_stack(&top_, to.top_); }
void Context::arrive(Context&) {}

#endif

}  // namespace zl::cuda::host
