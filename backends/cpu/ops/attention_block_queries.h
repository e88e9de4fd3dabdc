// Attention forward over a layout of blocks: one tile of queries of one head. Its granules of 16
// queries are taken one after the other, each with the scores of all keys that it sees of a group:
// few blocks are there, and what a granule needs of them stays in the nearest cache.
// Ownership: refers to the op and to scratch of its thread. Threads: one.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "backends/cpu/ops/attention_blocks.h"
#include "backends/cpu/ops/fast_math.h"

namespace zl::cpu {

template <class T>
class BlockQueries {
 public:
  using A = Arithmetic<T>;

  BlockQueries(const AttentionForward& op, std::int64_t plane, std::int64_t first)
      : op_(op),
        plane_(plane),
        first_(first),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)),
        queries_(std::min(kTile, op.shape.sequence - first)),
        batch_(plane / op.shape.heads),
        head_(plane % op.shape.heads),
        kv_head_(head_ / (op.shape.heads / op.shape.kv_heads)),
        limit_(band_of(op.mask, op.shape, batch_).limit) {
    static thread_local Scratch<A> scratch;
    A* next = scratch.reserve(kTile * (width_ + padded_) + kKeys * (2 * padded_ + 2 * kGranule));
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    queries_t_ = take(width_ * kTile);
    out_ = take(kTile * padded_);
    keys_ = take(kKeys * padded_);
    values_ = take(kKeys * padded_);
    scores_ = take(kKeys * kGranule);
    factors_ = take(kKeys * kGranule);
  }

  // Meanwhile what the tile at `next_first` of `next_plane`, which comes after it, reads is brought
  // nearer.
  void run(std::int64_t next_plane, std::int64_t next_first) {
    load_queries();
    std::fill(maximum_, maximum_ + kTile, -std::numeric_limits<A>::infinity());
    std::fill(sum_, sum_ + kTile, A{0});
    fresh_ = (1u << kGranules) - 1;
    bool is_first = true;
    each_group(op_.mask, op_.shape, head_, first_, [&](const BlockGroup& group) {
      load_keys(group);
      for (std::int64_t r = 0; r < queries_ / kGranule; ++r) {
        if (is_first) prefetch(next_plane, next_first, r);
        add(group, r);
      }
      is_first = false;
    });
    finish();
  }

 private:
  static constexpr std::int64_t kKeys = kMostTogether * kGranule;
  static constexpr std::int64_t kScores = kGranule * kGranule;  // of a granule of keys

  // As [granule][width][query].
  void load_queries() {
    A* rows = out_;  // which nobody has written yet
    load_rows<T>(head_columns(op_.qkv.q, head_, width_), batch_ * op_.shape.sequence + first_,
                 queries_, width_, padded_, static_cast<A>(op_.scale), rows);
    for (std::int64_t q = 0; q < queries_; q += kGranule) {
      transpose(rows + q * padded_, padded_, queries_t_ + q * width_, kGranule, kGranule, width_);
    }
  }

  void load_keys(const BlockGroup& group) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t row = batch_ * op_.shape.key_count() + group.key(i);
      const std::int64_t at = i * kGranule * padded_;
      load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), row, kGranule, width_, padded_, A{1},
                   keys_ + at);
      load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), row, kGranule, width_, padded_, A{1},
                   values_ + at);
    }
  }

  // A part for each granule of queries; and where the results of this one go.
  void prefetch(std::int64_t plane, std::int64_t first, std::int64_t r) {
    const std::int64_t row = r * kGranule, batch = plane / op_.shape.heads;
    const std::int64_t head = plane % op_.shape.heads;
    const std::int64_t kv_head = head / (op_.shape.heads / op_.shape.kv_heads);
    prefetch_rows<T, Prefetch::write>(output_columns(op_.out, head_, width_),
                                      batch_ * op_.shape.sequence + first_ + row, kGranule, width_);
    if (first + row >= op_.shape.sequence) return;
    prefetch_rows<T>(head_columns(op_.qkv.q, head, width_),
                     batch * op_.shape.sequence + first + row, kGranule, width_);
    std::int64_t left = kMostTogether;
    each_group(op_.mask, op_.shape, head, first, [&](const BlockGroup& group) {
      for (std::int64_t i = r; i < std::min(group.count, left); i += kGranules) {
        const std::int64_t key = batch * op_.shape.key_count() + group.key(i);
        prefetch_rows<T>(head_columns(op_.qkv.k, kv_head, width_), key, kGranule, width_);
        prefetch_rows<T>(head_columns(op_.qkv.v, kv_head, width_), key, kGranule, width_);
      }
      left = 0;
    });
  }

  // What granule r sees of the group.
  void add(const BlockGroup& group, std::int64_t r) {
    std::int64_t seen[kMostTogether], count = 0;
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (group.sees(i, r)) seen[count++] = i;
    }
    if (count == 0) return;
    for (std::int64_t n = 0; n < count; ++n) score(group.key(seen[n]), seen[n], r, scores_of(n));
    update_softmax(r, count * kGranule);
    for (std::int64_t n = 0; n < count && op_.dropout.p > 0; ++n) {
      drop(group.key(seen[n]), r, scores_of(n));
    }
    std::array<GranuleFactors<A>, kMostTogether> factors;
    for (std::int64_t n = 0; n < count; ++n) {
      factors[static_cast<std::size_t>(n)] = {scores_of(n), values_ + seen[n] * kGranule * padded_};
    }
    multiply_granules<A>(std::span(factors).first(static_cast<std::size_t>(count)), kGranule,
                         padded_, is_diagonal(group.key(seen[count - 1]), r),
                         out_ + r * kGranule * padded_, !is_fresh(r));
    fresh_ &= ~(1u << r);
  }

  A* scores_of(std::int64_t n) { return scores_ + n * kScores; }  // [key][query]
  bool is_fresh(std::int64_t r) const { return (fresh_ >> r & 1) != 0; }
  // Whether the granule of keys is that of the queries themselves, which see no later ones.
  bool is_diagonal(std::int64_t key, std::int64_t r) const {
    return op_.mask.is_causal() && key == first_ + r * kGranule;
  }

  // Of granule r and the keys from `key` on, which lie in place i.
  void score(std::int64_t key, std::int64_t i, std::int64_t r, A* scores) {
    multiply_part<A>({keys_ + i * kGranule * padded_, padded_, 1}, kGranule,
                     queries_t_ + r * kGranule * width_, kGranule, width_, kGranule, scores,
                     kGranule, false);
    if (is_diagonal(key, r)) hide_behind_diagonal(scores, kGranule, kUnseen);
    const std::int64_t visible = std::clamp<std::int64_t>(limit_ - key, 0, kGranule);
    std::fill(scores + visible * kGranule, scores + kScores, kUnseen);
  }

  // Scores of `keys` keys become probabilities against the new maxima; earlier sums are rescaled.
  void update_softmax(std::int64_t r, std::int64_t keys) {
    const Vector<A> lowest = broadcast(std::numeric_limits<A>::lowest());  // where nothing is seen
    A keep[kGranule];
    for (std::int64_t lane = 0; lane < kGranule; lane += kLanes<A>) {
      const std::int64_t at = r * kGranule + lane;
      A* column = scores_ + lane;
      const Vector<A> before = load_vector(maximum_ + at);
      Vector<A> peaks[4] = {before, before, before, before};  // so that none waits for the last
      for (std::int64_t k = 0; k < keys; k += 4) {
#pragma GCC unroll 4
        for (std::int64_t i = 0; i < 4; ++i) {
          peaks[i] = larger(load_vector(column + (k + i) * kGranule), peaks[i]);
        }
      }
      const Vector<A> peak =
          larger(larger(larger(peaks[0], peaks[1]), larger(peaks[2], peaks[3])), lowest);
      Vector<A> sum = {};
      for (std::int64_t k = 0; k < keys; ++k) {
        const Vector<A> probability = fast_exp(load_vector(column + k * kGranule) - peak);
        store_vector(column + k * kGranule, probability);
        sum += probability;
      }
      const Vector<A> kept = fast_exp(before - peak);
      store_vector(keep + lane, kept);
      store_vector(sum_ + at, load_vector(sum_ + at) * kept + sum);
      store_vector(maximum_ + at, peak);
    }
    for (std::int64_t q = 0; q < kGranule && !is_fresh(r); ++q) {
      if (keep[q] == A{1}) continue;
      A* __restrict out = out_ + (r * kGranule + q) * padded_;
      for (std::int64_t d = 0; d < padded_; ++d) out[d] *= keep[q];
    }
  }

  static Vector<A> larger(Vector<A> a, Vector<A> b) { return a > b ? a : b; }

  void drop(std::int64_t key, std::int64_t r, A* probabilities) {
    dropout_tile(op_.dropout, plane_, op_.shape, first_ + r * kGranule, kGranule, key, kGranule,
                 kGranule, factors_);
    for (std::int64_t i = 0; i < kScores; ++i) probabilities[i] *= factors_[i];
  }

  void finish() {
    A* lse = op_.lse.as<A>() + plane_ * op_.shape.sequence + first_;
    for (std::int64_t r = 0; r < queries_ / kGranule; ++r) {
      if (is_fresh(r)) std::fill_n(out_ + r * kGranule * padded_, kGranule * padded_, A{0});
    }
    for (std::int64_t q = 0; q < queries_; ++q) {
      const A factor = sum_[q] > 0 ? A{1} / sum_[q] : A{0};
      store_rows<T>(output_columns(op_.out, head_, width_),
                    batch_ * op_.shape.sequence + first_ + q, 1, width_, padded_, factor,
                    out_ + q * padded_);
      lse[q] = maximum_[q] + std::log(sum_[q]);
    }
  }

  static constexpr A kUnseen = -std::numeric_limits<A>::infinity();

  const AttentionForward& op_;
  std::int64_t plane_, first_, width_, padded_, queries_, batch_, head_, kv_head_;
  std::int64_t limit_;   // keys from it on are padding
  unsigned fresh_ = 0;   // a bit for each granule of out_ that nobody has written
  A *queries_t_, *out_;  // out_: [query][padded]
  A *keys_, *values_;    // [place][key][padded]
  A *scores_, *factors_;
  A maximum_[kTile], sum_[kTile];
};

}  // namespace zl::cpu
