// Which keys a query of attention sees, as a value of the op.
// Ownership: none; the lengths' memory is the caller's. Threads: values.
#pragma once

#include <algorithm>

#include "core/base/tensor.h"
#include "core/ops/kinds.h"

namespace zl {

// The query at position p sees the keys [begin(p), end(p)): all masks are bands of the scores.
struct KeyBand {
  static constexpr std::int64_t kUnbounded = std::int64_t{1} << 30;

  std::int64_t behind = kUnbounded, ahead = kUnbounded;  // keys before and after the query's own
  std::int64_t limit = 0;                                // keys there are

  std::int64_t begin(std::int64_t p) const { return std::max<std::int64_t>(0, p - behind); }
  std::int64_t end(std::int64_t p) const { return std::min(limit, p + ahead + 1); }
};

struct AttentionMask {
  AttentionMaskKind kind = AttentionMaskKind::causal;
  std::int64_t window = 0;  // of `window`
  TensorView lengths = {};  // of `lengths`: i32[batch], each in [0, keys]

  static AttentionMask causal() { return {}; }
  static AttentionMask full() { return {AttentionMaskKind::full}; }
  static AttentionMask sliding(std::int64_t window) { return {AttentionMaskKind::window, window}; }
  static AttentionMask padded(const TensorView& lengths) {
    return {AttentionMaskKind::lengths, 0, lengths};
  }

  // Whether the keys that a query sees end with its own.
  bool is_causal() const {
    return kind == AttentionMaskKind::causal || kind == AttentionMaskKind::window;
  }

  // Of one sequence with `keys` keys; the kernels lower the limit to the sequence's length.
  KeyBand band(std::int64_t keys) const {
    const bool bounded = kind == AttentionMaskKind::window && window <= KeyBand::kUnbounded;
    return {bounded ? window - 1 : KeyBand::kUnbounded, is_causal() ? 0 : KeyBand::kUnbounded,
            keys};
  }

  // How many (query, key) pairs of one sequence it lets see; what cost() is made of. Lengths lie on
  // the device: they count as if all were `keys`.
  std::int64_t pairs(std::int64_t queries, std::int64_t keys, std::int64_t first_position) const {
    const KeyBand seen = band(keys);
    // Up to query i: the sums of ends min(keys, p + ahead + 1) and of begins max(0, p - behind).
    const auto sum_of_ramp = [](std::int64_t first, std::int64_t count) {  // of max(0, first + i)
      const std::int64_t skipped = std::clamp<std::int64_t>(-first, 0, count);
      const std::int64_t terms = count - skipped;
      return terms * (first + skipped) + terms * (terms - 1) / 2;
    };
    const std::int64_t beyond = sum_of_ramp(first_position + seen.ahead + 1 - keys, queries);
    const std::int64_t ends = sum_of_ramp(first_position + seen.ahead + 1, queries) - beyond;
    return ends - sum_of_ramp(first_position - seen.behind, queries);
  }
};

}  // namespace zl
