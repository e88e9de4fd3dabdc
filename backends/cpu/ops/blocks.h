// Flat element-wise loops in cache-sized blocks over the threads of one rank.
// Ownership: nothing. Threads: `fn` runs at once on several threads, on disjoint ranges.
#pragma once

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"

namespace zl::cpu {

// A stream of elements, each asked for one block before it is used; the last asks lie behind its
// end, which is harmless. The processor's own prefetch loses streams when there are many and short
// ones beside them: measured on a Xeon, Adam's step ran at 0.94 of the bandwidth with this and at
// 0.90 without, the packing of signs at 0.90 and 0.63.
class Ahead {
 public:
  static constexpr std::int64_t kFetch = 32;  // elements of a call

  // The elements of `view` from `first` on. For an empty view calls do nothing.
  Ahead(const TensorView& view, std::int64_t first)
      : size_(view.empty() ? 0 : static_cast<std::int64_t>(size_of(view.dtype))),
        next_(address(view.data) + static_cast<std::uintptr_t>((first + kBlock) * size_)) {}
  explicit Ahead(const float* x)
      : size_(sizeof(float)), next_(address(x) + static_cast<std::uintptr_t>(kBlock * size_)) {}

  // While elements [i, i + kFetch) are used.
  void fetch(std::int64_t i) const {
    constexpr std::int64_t kLine = 64;
    for (std::int64_t line = 0; line < kFetch * size_; line += kLine) {
      __builtin_prefetch(
          reinterpret_cast<const void*>(next_ + static_cast<std::uintptr_t>(i * size_ + line)));
    }
  }

 private:
  static std::uintptr_t address(const void* x) { return reinterpret_cast<std::uintptr_t>(x); }

  std::int64_t size_;
  std::uintptr_t next_;
};

// What an update multiplies its gradients by.
template <class Update>
float gradient_scale(const Update& op) {
  if (op.factor.empty()) return op.grad_scale;
  return static_cast<float>(*op.factor.template as<const double>());
}

// fn(first, length) over [0, count) in blocks of at most kBlock. fn must not throw.
template <class F>
void for_blocks(const ExecContext& context, std::int64_t count, F&& fn) {
  parallel_for(context, count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kBlock) {
      fn(first, std::min(kBlock, end - first));
    }
  });
}

}  // namespace zl::cpu
