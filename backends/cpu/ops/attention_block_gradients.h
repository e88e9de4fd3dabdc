// Attention backward over a layout of blocks, of all query heads of one kv head of one sequence.
// Tiles of queries meet granules of keys as in the forward, a granule of queries after the other,
// each all that it sees; a granule of keys, as soon as its last queries were met, all that see it.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "backends/cpu/ops/attention_granule_rows.h"
#include "backends/cpu/ops/attention_key_gradients.h"
#include "backends/cpu/ops/fast_math.h"

namespace zl::cpu {

template <class T>
class BlockHeadGroup {
 public:
  using A = Arithmetic<T>;

  // own: for what waits between tiles; shared: with other groups of the same thread. ahead: what
  // is brought nearer meanwhile.
  BlockHeadGroup(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
                 Scratch<A>& own, Scratch<A>& shared, RowsAhead& ahead)
      : op_(op),
        ahead_(ahead),
        batch_(batch),
        kv_head_(kv_head),
        row_(batch * op.shape.sequence),
        limit_(band_of(op.mask, op.shape, batch).limit),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)),
        rows_(op, padded_),
        gradients_(op, batch, kv_head, padded_, rows_.factor()) {
    gradients_.use(own.reserve(gradients_.elements()));
    const std::int64_t of_rows = GranuleRows<T>::elements(width_, padded_);
    A* next = shared.reserve(of_rows + kTile * padded_ + 2 * kKeys * padded_ + 3 * kKeys * kTile);
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    rows_.use(take(of_rows));
    dqueries_ = take(kTile * padded_);
    keys_ = take(kKeys * padded_), values_ = take(kKeys * padded_);
    probabilities_ = take(kKeys * kTile);
    dscores_ = take(kKeys * kTile), kept_ = take(kKeys * kTile);
  }

  // The part of a tile of queries, of all heads, in all gradients; tiles in ascending order.
  void add_queries(std::int64_t first) {
    const std::int64_t group = op_.shape.heads / op_.shape.kv_heads;
    for (std::int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) {
      add_queries(head, first);
    }
  }

  void finish() { gradients_.finish(); }

  // What the tile after the one at `first` meets of keys that this one does not.
  void look_ahead(std::int64_t first) const {
    const std::int64_t head = kv_head_ * (op_.shape.heads / op_.shape.kv_heads);
    const std::int64_t next = first + kTile;
    const auto now = entries_of(op_.mask, op_.shape, head, first);
    each_new_key(now, entries_of(op_.mask, op_.shape, head, next), next, [&](std::int64_t key) {
      for (const ColumnsView& each : {op_.qkv.k, op_.qkv.v}) {
        add_rows<T>(head_columns(each, kv_head_, width_), row_ + key, kGranule, width_, ahead_);
      }
      gradients_.look_ahead(key / kGranule, ahead_);
    });
    ahead_.spread(pairs_of(now) * (2 * fetches<A>(width_) + 3 * fetches<A>(padded_)));
  }

 private:
  static constexpr std::int64_t kKeys = kMostTogether * kGranule;
  static constexpr std::int64_t kPairs = kGranule * kGranule;

  void add_queries(std::int64_t head, std::int64_t first) {
    head_ = head, plane_ = batch_ * op_.shape.heads + head, first_ = first;
    at_once_ = meets_all_at_once(op_.mask, op_.shape, head, first);
    ends_ = ends_of(entries_of(op_.mask, op_.shape, head, first));
    fresh_ = (1u << kGranules) - 1;
    rows_.begin(plane_, first);
    HeadRows<T> dqueries(head_columns(op_.dqkv.q, head, width_), width_);
    const std::int64_t granules = std::min(kTile, op_.shape.sequence - first) / kGranule;
    unsigned loaded = 0;
    each_group(op_.mask, op_.shape, head, first, [&](const BlockGroup& group) {
      for (std::int64_t r = 0; r < granules; ++r) {
        if ((loaded >> r & 1) == 0) load_queries(r), loaded |= 1u << r;
        load_keys(group, r);
        add_queries(group, r, dqueries);
        for (std::int64_t i = 0; i < group.count; ++i) {
          if (group.is_last(i, r)) add_keys(group, i);
        }
      }
    });
    for (std::int64_t r = 0; r < granules; ++r) {
      if ((fresh_ >> r & 1) == 0) continue;  // it sees nothing
      dqueries.put_zeros(row_ + query(r), kGranule);
      std::fill_n(delta_of(r), kGranule, A{0});
    }
  }

  void load_queries(std::int64_t r) {
    rows_.load(r * kGranule);
    if (!at_once_) rows_.load_delta(r * kGranule);
  }
  // Those that no granule of queries before r sees, [granule][key][padded].
  void load_keys(const BlockGroup& group, std::int64_t r) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (!group.is_first(i, r)) continue;
      const std::int64_t row = row_ + group.key(i), at = i * granule_rows();
      load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), row, kGranule, width_, padded_,
                   Unscaled{}, keys_ + at);
      load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), row, kGranule, width_, padded_,
                   Unscaled{}, values_ + at);
    }
  }

  // What granule r of queries sees of the group.
  void add_queries(const BlockGroup& group, std::int64_t r, HeadRows<T>& dqueries) {
    std::array<GranuleFactors<A>, kMostTogether> products;
    std::size_t count = 0;
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (!group.sees(i, r)) continue;
      last = i;
      add_pair(group.key(i), i, r);
      products[count++] = {dscores_ + pair(i, r), keys_ + i * granule_rows()};
    }
    if (count == 0) return;
    differentiate(group, r);
    A scales[kGranule];
    std::fill(scales, scales + kGranule, static_cast<A>(op_.scale));
    const unsigned bit = 1u << r;
    const bool adds = (std::exchange(fresh_, fresh_ & ~bit) & bit) == 0;
    const bool ends = group.entry + last + 1 == ends_[static_cast<std::size_t>(r)];
    const GranuleSums<T> sums{
        dqueries_ + r * granule_rows(), padded_, adds, ends, dqueries, row_ + query(r), scales};
    multiply_granules<A>(std::span(products).first(count), 1, kGranule, padded_, padded_,
                         is_diagonal(group.key(last), r) ? Part::depth_to_row : Part::all, ahead_,
                         sums);
  }

  // Probabilities and their gradients, of the pair of granule i of the group and granule r.
  void add_pair(std::int64_t key, std::int64_t i, std::int64_t r) {
    A *probabilities = probabilities_ + pair(i, r), *gradients = dscores_ + pair(i, r);
    const std::int64_t lane = r * kGranule;
    multiply_granule(keys_ + i * granule_rows(), padded_, rows_.queries_t(lane), width_, ahead_,
                     [&](std::int64_t k, std::int64_t q, Vector<A> score) {
                       store_vector(probabilities + k * kGranule + q,
                                    fast_exp(score - load_vector(rows_.lse(lane + q))));
                     });
    multiply_granule(values_ + i * granule_rows(), padded_, rows_.dout_t(lane), width_, ahead_,
                     [&](std::int64_t k, std::int64_t q, Vector<A> gradient) {
                       store_vector(gradients + k * kGranule + q, gradient);
                     });
    for (A* each : {probabilities, gradients}) {
      hide_unseen(key, query(r), op_.mask.is_causal(), limit_, A{0}, each);
    }
    if (op_.dropout.p == 0) return;
    A* kept = kept_ + pair(i, r);
    dropout_tile(op_.dropout, plane_, op_.shape, query(r), kGranule, key, kGranule, kGranule, kept);
    for (std::int64_t at = 0; at < kPairs; ++at) gradients[at] *= kept[at];
  }

  // Gradients of probabilities -> of scores, of what granule r sees of the group; probabilities ->
  // dropped ones, for the gradient of the values.
  void differentiate(const BlockGroup& group, std::int64_t r) {
    const auto each_seen = [&](auto&& f) {
      for (std::int64_t i = 0; i < group.count; ++i) {
        if (group.sees(i, r)) f(pair(i, r));
      }
    };
    for (std::int64_t lane = 0; lane < kGranule; lane += kLanes<A>) {
      Vector<A> delta = load_vector(rows_.delta(r * kGranule + lane));
      if (at_once_) {
        delta = Vector<A>{};
        each_seen([&](std::int64_t first) { delta += part_of_delta(first + lane); });
        store_vector(delta_of(r) + lane, delta);
      }
      each_seen([&](std::int64_t first) {
        for (std::int64_t at = first + lane; at < first + kPairs; at += kGranule) {
          store_vector(dscores_ + at,
                       load_vector(probabilities_ + at) * (load_vector(dscores_ + at) - delta));
        }
      });
    }
    if (op_.dropout.p == 0) return;
    each_seen([&](std::int64_t first) {
      for (std::int64_t at = first; at < first + kPairs; ++at) probabilities_[at] *= kept_[at];
    });
  }

  // The part in rowsum(dout * out) of the keys of a pair, for the queries of the lanes from there
  // on: the sum of the probabilities times their gradients, which needs no output.
  Vector<A> part_of_delta(std::int64_t first) const {
    Vector<A> sums[2] = {};
    for (std::int64_t at = first; at < first + kPairs; at += 2 * kGranule) {
      for (std::int64_t i = 0; i < 2; ++i) {
        sums[i] = multiply_add(load_vector(probabilities_ + at + i * kGranule),
                               load_vector(dscores_ + at + i * kGranule), sums[i]);
      }
    }
    return sums[0] + sums[1];
  }

  // What sees granule i of the group.
  void add_keys(const BlockGroup& group, std::int64_t i) {
    std::array<GranuleFactors<A>, kGranules> of_keys, of_values;
    std::size_t count = 0;
    std::int64_t first = 0;
    for (std::int64_t r = kGranules - 1; r >= 0; --r) {
      if (group.sees(i, r)) first = r;
    }
    for (std::int64_t r = first; r < kGranules; ++r) {
      if (!group.sees(i, r)) continue;
      of_keys[count] = {dscores_ + pair(i, r), rows_.queries(r * kGranule)};
      of_values[count++] = {probabilities_ + pair(i, r), rows_.dout(r * kGranule)};
    }
    const std::int64_t granule = group.key(i) / kGranule;
    const auto sums = gradients_.next(granule, is_last(granule));
    const Part part = is_diagonal(group.key(i), first) ? Part::depth_from_row : Part::all;
    multiply_granules<A>(std::span(of_values).first(count), kGranule, 1, rows_.dout_stride(),
                         padded_, part, ahead_, sums.values);
    multiply_granules<A>(std::span(of_keys).first(count), kGranule, 1, rows_.queries_stride(),
                         padded_, part, ahead_, sums.keys);
  }

  // Whether no query after those of this tile and head sees the granule of keys. (Where every head
  // has a layout, those of other heads may: such granules wait to the end.)
  bool is_last(std::int64_t granule) const {
    const std::int64_t group = op_.shape.heads / op_.shape.kv_heads;
    if (group > 1 && (op_.mask.layouts > 1 || head_ + 1 < (kv_head_ + 1) * group)) return false;
    const std::int64_t last = last_to_see(op_.mask, op_.shape, head_, granule);
    return last < (first_ + kTile) / kGranule;
  }

  std::int64_t query(std::int64_t r) const { return first_ + r * kGranule; }
  A* delta_of(std::int64_t r) const {
    return op_.delta.as<A>() + plane_ * op_.shape.sequence + query(r);
  }
  // Whether queries of granule r see of the keys those up to their own.
  bool is_diagonal(std::int64_t key, std::int64_t r) const {
    return op_.mask.is_causal() && key == query(r);
  }
  // Where scores of granule i of a group and granule r of the queries lie, [key][query].
  static std::int64_t pair(std::int64_t i, std::int64_t r) { return (i * kGranules + r) * kPairs; }
  std::int64_t granule_rows() const { return kGranule * padded_; }

  const AttentionBackward& op_;
  RowsAhead& ahead_;
  std::int64_t batch_, kv_head_, row_;
  std::int64_t limit_;  // keys from it on are padding
  std::int64_t width_, padded_;
  GranuleRows<T> rows_;
  KeyGradients<T> gradients_;
  A* dqueries_;        // of the queries, [kTile][padded]
  A *keys_, *values_;  // of a group of blocks, [granule][key][padded]
  A *probabilities_, *dscores_, *kept_;
  std::int64_t head_ = 0, plane_ = 0, first_ = 0;  // the current tile of queries
  std::array<const std::int32_t*, kGranules> ends_;
  bool at_once_ = false;  // whether all that the tile sees is one group
  unsigned fresh_ = 0;    // a bit for each granule of queries that have seen nothing
};

}  // namespace zl::cpu
