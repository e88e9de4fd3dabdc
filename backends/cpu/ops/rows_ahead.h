// Rows of memory that are used later, brought nearer a cache line at a time while something else is
// computed: asked for all at once they would keep the processor waiting. Pieces of rows lie far
// from each other, which it does not foresee by itself.
// Ownership: addresses, which are not read. Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/cpu/ops/tile.h"

namespace zl::cpu {

inline const bool kIsIntel = [] {
#ifdef __x86_64__
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}();
// Measured with attention over blocks of 16. All of the next tile, into the second-level cache: a
// step of 16,384 tokens takes 2 to 9 % less time on a Xeon (family 6 model 207). Zen 4 drops
// requests for that cache after other work; there all go into the nearest one, which takes 10 to
// 20 % off a local window's. Processors without AVX-512 (Zen 3) are asked for as much as costs
// their loads no time.
inline const bool kAsksForAll = kIsIntel || kVectorBytes == 64;

class RowsAhead {
 public:
  void clear() {
    runs_.clear();
    run_ = 0, row_ = 0;
    at_ = end_ = nullptr;
    lines_ = 0;
    every_ = wait_ = std::numeric_limits<std::int64_t>::max();
  }
  // `rows` pieces of `bytes`, each `stride` bytes behind the one before.
  void add(const void* first, std::int64_t rows, std::int64_t stride, std::int64_t bytes) {
    const auto* from = static_cast<const std::byte*>(first);
    if (rows <= 0) return;
    lines_ += rows * ((bytes + kLineBytes - 1) / kLineBytes);
    if (!runs_.empty()) {  // which pieces go on from?
      Run& last = runs_.back();
      if (last.first + last.bytes == from && last.rows == rows && last.stride == stride) {
        last.bytes += bytes;
        return;
      }
    }
    runs_.push_back({from, rows, stride, bytes});
  }

  // All is to be asked for in so many calls of fetch(), evenly; what is too much for them is left
  // out, from the end, where asking for it would keep other loads waiting.
  void spread(std::int64_t calls) {
    if (lines_ == 0 || calls == 0) return;
    if (kAsksForAll) {
      const std::int64_t wanted = (lines_ + calls - 1) / calls;
      together_ = round_up(std::max(wanted, 2 * kTogether), kTogether);
    }
    every_ = std::max<std::int64_t>(1, calls * together_ / lines_);
    wait_ = 1;
  }
  [[gnu::always_inline]] void fetch() {
    if (--wait_ > 0) return;
    wait_ = every_;
    for (std::int64_t left = together_; left > 0; left -= kTogether) {
      if (at_ >= end_ && !next_piece()) return;
      kIsIntel ? ask<kSecondCache>() : ask<kNearestCache>();
    }
  }

 private:
  // Lines of a piece that are asked for at once.
  static constexpr std::int64_t kTogether = 4;
  // As __builtin_prefetch() counts.
  static constexpr int kSecondCache = 2, kNearestCache = 3;

  struct Run {
    const std::byte* first;
    std::int64_t rows, stride, bytes;
  };

  template <int Cache>
  [[gnu::always_inline]] void ask() {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kTogether; ++i) {
      __builtin_prefetch(at_ + i * kLineBytes, 0, Cache);
    }
    at_ += kTogether * kLineBytes;
  }

  bool next_piece() {
    if (run_ == runs_.size()) return false;
    const Run& run = runs_[run_];
    at_ = run.first + row_ * run.stride;
    end_ = at_ + run.bytes;
    if (++row_ == run.rows) row_ = 0, ++run_;
    return true;
  }

  std::vector<Run> runs_;
  std::size_t run_ = 0;
  std::int64_t row_ = 0, lines_ = 0;
  std::int64_t every_ = 1, wait_ = 1;  // calls from one that asks to the next
  std::int64_t together_ = kTogether;  // lines that it asks for: then most have nothing to do
  const std::byte *at_ = nullptr, *end_ = nullptr;
};

}  // namespace zl::cpu
