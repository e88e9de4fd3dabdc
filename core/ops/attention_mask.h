// Which keys a query of attention sees, as a value of the op.
// Ownership: none; the lengths' memory is the caller's. Threads: values.
#pragma once

#include <algorithm>

#include "core/base/tensor.h"
#include "core/ops/block_table.h"
#include "core/ops/kinds.h"

namespace zl {

// The query at position p sees the keys [begin(p), end(p)): masks are bands of the scores, those of
// the block kinds with holes.
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
  TensorView lengths =
      {};  // of `lengths`: i32[batch], each in [0, keys]; block kinds may have them
  // Of the block kinds: BlockTable's words, for one layout or one for each of the op's heads, and
  // the (query, key) pairs that they let see, over all these heads.
  TensorView blocks = {};
  std::int64_t layouts = 0, block_pairs = 0;
  TileParts parts = {};  // of the table

  static AttentionMask causal() { return {}; }
  static AttentionMask full() { return {AttentionMaskKind::full}; }
  static AttentionMask sliding(std::int64_t window) { return {AttentionMaskKind::window, window}; }
  static AttentionMask padded(const TensorView& lengths) {
    return {AttentionMaskKind::lengths, 0, lengths};
  }
  // words: the table's, where the op's device has them; heads: the op's.
  static AttentionMask sparse(const TensorView& words, const BlockTable& table, std::int64_t heads,
                              bool causal, const TensorView& lengths = {}) {
    return {causal ? AttentionMaskKind::causal_blocks : AttentionMaskKind::blocks,
            0,
            lengths,
            words,
            table.layouts,
            table.pairs * (table.layouts == 1 ? heads : 1),
            table.parts};
  }

  // Whether the keys that a query sees end with its own.
  bool is_causal() const {
    return kind == AttentionMaskKind::causal || kind == AttentionMaskKind::window ||
           kind == AttentionMaskKind::causal_blocks;
  }
  bool has_blocks() const {
    return kind == AttentionMaskKind::blocks || kind == AttentionMaskKind::causal_blocks;
  }

  // Of one sequence with `keys` keys; the kernels lower the limit to the sequence's length. Of the
  // blocks' keys those outside of it are not seen.
  KeyBand band(std::int64_t keys) const {
    const bool bounded = kind == AttentionMaskKind::window && window <= KeyBand::kUnbounded;
    return {bounded ? window - 1 : KeyBand::kUnbounded, is_causal() ? 0 : KeyBand::kUnbounded,
            keys};
  }

  // How many (query, key) pairs of one head of one sequence its band lets see; what cost() is made
  // of. Lengths lie on the device: they count as if all were `keys`.
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
