// Attention forward over a layout of blocks: one tile of queries of one head. Its granules of 16
// queries are taken one after the other, each with the scores of all keys that it sees of a group:
// few blocks are there, and what a granule needs of them stays in the nearest cache.
// Ownership: refers to the op and to scratch of its thread. Threads: one.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "backends/cpu/ops/attention_granules.h"
#include "backends/cpu/ops/attention_softmax.h"
#include "backends/cpu/ops/attention_transpose.h"

namespace zl::cpu {

// Which tile comes after another, and the share of its rows that is brought nearer meanwhile: part
// `part` of `heads`, of so many heads that are taken one after the other, the first of `plane`.
struct TileAhead {
  std::int64_t plane, first, heads, part;
};

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
        limit_(band_of(op.mask, op.shape, batch_).limit),
        rows_(output_columns(op.out, head_, width_), width_),
        values_(rows_in_place<T>(head_columns(op.qkv.v, kv_head_, width_), width_, padded_)) {
    static thread_local Scratch<A> scratch;
    A* next = scratch.reserve(kTile * (width_ + padded_) + kKeys * (2 * padded_ + 2 * kGranule));
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    queries_t_ = take(width_ * kTile);
    out_ = take(kTile * padded_);
    keys_ = take(kKeys * padded_);
    copied_values_ = take(kKeys * padded_);
    scores_ = take(kKeys * kGranule);
    factors_ = take(kKeys * kGranule);
  }

  void run(const TileAhead& next) {
    static thread_local RowsAhead ahead;
    ahead_ = &ahead;
    look_ahead(next);
    softmax_.clear();
    const std::span<const std::int32_t> entries = entries_of(op_.mask, op_.shape, head_, first_);
    ends_ = ends_of(entries);
    fresh_ = (1u << kGranules) - 1;
    each_group(op_.mask, op_.shape, head_, first_, [&](const BlockGroup& group) {
      at_once_ = group.count == std::ssize(entries);
      for (std::int64_t r = 0; r < queries_ / kGranule; ++r) {
        if (group.entry == entries.data()) load_queries(r);
        load(group, r);
        add(group, r);
        give_back(group, r);
      }
    });
    for (std::int64_t r = 0; r < queries_ / kGranule; ++r) {
      if (is_fresh(r)) see_nothing(r);
    }
  }

 private:
  static constexpr std::int64_t kKeys = kMostTogether * kGranule;
  static constexpr std::int64_t kScores = kGranule * kGranule;  // of a granule of keys

  // What the next tile reads.
  void look_ahead(const TileAhead& next) {
    const AttentionShape& shape = op_.shape;
    const std::int64_t batch = next.plane / shape.heads, head = next.plane % shape.heads;
    const std::int64_t group = shape.heads / shape.kv_heads, kv_head = head / group;
    const std::int64_t kv_width = (next.heads + group - 1) / group * width_;
    const std::int64_t count = std::min(kTile, shape.sequence - next.first);
    const std::int64_t begin = count * next.part / next.heads;
    const std::int64_t rows = count * (next.part + 1) / next.heads - begin;
    const std::int64_t row = batch * shape.sequence + next.first + begin;
    ahead_->clear();
    const HeadColumns q = head_columns(op_.qkv.q, head, width_);
    const HeadColumns k = head_columns(op_.qkv.k, kv_head, width_);
    const HeadColumns v = head_columns(op_.qkv.v, kv_head, width_);
    add_rows<T>(q, row, rows, next.heads * width_, *ahead_);
    add_rows<T>(k, row, rows, kv_width, *ahead_);
    add_rows<T>(v, row, rows, kv_width, *ahead_);
    const std::int64_t own = head + next.part;
    const auto now = entries_of(op_.mask, shape, head_, first_);
    const HeadColumns own_k = head_columns(op_.qkv.k, own / group, width_);
    const HeadColumns own_v = head_columns(op_.qkv.v, own / group, width_);
    each_new_key(now, entries_of(op_.mask, shape, own, next.first), next.first,
                 [&](std::int64_t key) {
                   const std::int64_t at = batch * shape.sequence + key;
                   add_rows<T>(own_k, at, kGranule, width_, *ahead_);
                   add_rows<T>(own_v, at, kGranule, width_, *ahead_);
                 });
    ahead_->spread(pairs_of(now) * (fetches<A>(width_) + fetches<A>(padded_)));
  }

  void load_queries(std::int64_t r) {
    load_transposed<T>(head_columns(op_.qkv.q, head_, width_), row(r), width_,
                       static_cast<A>(op_.scale), queries_t(r));
  }
  // Of granule r, [width][query]; for one group those of one granule at a time.
  A* queries_t(std::int64_t r) { return queries_t_ + (at_once_ ? 0 : r) * kGranule * width_; }

  // Keys and values that no granule of queries before r sees.
  void load(const BlockGroup& group, std::int64_t r) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (!group.is_first(i, r)) continue;
      places_.take(i);
      const std::int64_t key = batch_ * op_.shape.sequence + group.key(i), at = place(i);
      load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), key, kGranule, width_, padded_,
                   Unscaled{}, keys_ + at);
      if (values_.first != nullptr) continue;
      load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), key, kGranule, width_, padded_,
                   Unscaled{}, copied_values_ + at);
    }
  }
  // Those that none after r sees.
  void give_back(const BlockGroup& group, std::int64_t r) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (group.is_last(i, r)) places_.give_back(i);
    }
  }
  // Of granule i of the group.
  std::int64_t place(std::int64_t i) const { return places_.of(i) * kGranule * padded_; }
  const A* values(const BlockGroup& group, std::int64_t i) const {
    if (values_.first == nullptr) return copied_values_ + place(i);
    return values_.at(batch_ * op_.shape.sequence + group.key(i));
  }

  // What granule r sees of the group.
  void add(const BlockGroup& group, std::int64_t r) {
    std::int64_t seen[kMostTogether], count = 0;
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (group.sees(i, r)) seen[count++] = i;
    }
    if (count == 0) return;
    for (std::int64_t n = 0; n < count; ++n) score(group, seen[n], r, scores_of(n));
    A keep[kGranule], factors[kGranule];
    softmax_.add(scores_, kGranule, count * kGranule, r * kGranule, kGranule, keep);
    for (std::int64_t n = 0; n < count && op_.dropout.p > 0; ++n) {
      drop(group.key(seen[n]), r, scores_of(n));
    }
    A* out = out_ + r * kGranule * padded_;
    if (!is_fresh(r)) rescale_rows(keep, kGranule, padded_, out);
    const bool ends = group.entry + seen[count - 1] + 1 == ends_[static_cast<std::size_t>(r)];
    if (ends) softmax_.end(op_, plane_, query(r), r * kGranule, kGranule, factors);
    std::array<GranuleFactors<A>, kMostTogether> products;
    for (std::int64_t n = 0; n < count; ++n) {
      products[static_cast<std::size_t>(n)] = {scores_of(n), values(group, seen[n])};
    }
    const bool diagonal = op_.mask.is_causal() && group.key(seen[count - 1]) == query(r);
    const GranuleSums<T> sums{out, padded_, !is_fresh(r), ends, rows_, row(r), factors};
    multiply_granules<A>(std::span(products).first(static_cast<std::size_t>(count)), 1, kGranule,
                         values_.stride, padded_, diagonal ? Part::depth_to_row : Part::all,
                         *ahead_, sums);
    fresh_ &= ~(1u << r);
  }

  void see_nothing(std::int64_t r) {
    A factors[kGranule];
    softmax_.end(op_, plane_, query(r), r * kGranule, kGranule, factors);
    rows_.put_zeros(row(r), kGranule);
  }

  A* scores_of(std::int64_t n) { return scores_ + n * kScores; }  // [key][query]
  bool is_fresh(std::int64_t r) const { return (fresh_ >> r & 1) != 0; }
  std::int64_t query(std::int64_t r) const { return first_ + r * kGranule; }
  std::int64_t row(std::int64_t r) const { return batch_ * op_.shape.sequence + query(r); }

  // Of granule r and granule i of the group.
  void score(const BlockGroup& group, std::int64_t i, std::int64_t r, A* scores) {
    multiply_granule(keys_ + place(i), padded_, queries_t(r), width_, *ahead_,
                     [&](std::int64_t k, std::int64_t q, Vector<A> score) {
                       store_vector(scores + k * kGranule + q, score);
                     });
    hide_unseen(group.key(i), query(r), op_.mask.is_causal(), limit_, kUnseen, scores);
  }

  void drop(std::int64_t key, std::int64_t r, A* probabilities) {
    dropout_tile(op_.dropout, plane_, op_.shape, query(r), kGranule, key, kGranule, kGranule,
                 factors_);
    for (std::int64_t i = 0; i < kScores; ++i) probabilities[i] *= factors_[i];
  }

  static constexpr A kUnseen = RunningSoftmax<A>::kUnseen;

  const AttentionForward& op_;
  std::int64_t plane_, first_, width_, padded_, queries_, batch_, head_, kv_head_;
  std::int64_t limit_;    // keys from it on are padding
  HeadRows<T> rows_;      // of the output
  FactorRows<A> values_;  // where they lie, else in copied_values_
  GranulePlaces places_;
  bool at_once_ = false;  // whether all that the tile sees is one group
  std::array<const std::int32_t*, kGranules> ends_;
  unsigned fresh_ = 0;        // a bit for each granule of out_ that nobody has written
  A *queries_t_, *out_;       // out_: [query][padded]
  A *keys_, *copied_values_;  // [place][key][padded]
  A *scores_, *factors_;
  RunningSoftmax<A> softmax_;
  RowsAhead* ahead_ = nullptr;
};

}  // namespace zl::cpu
