// Attention backward of all query heads of one kv head of one sequence: what owns a part of dqkv.
// Over a layout of blocks its tiles of queries meet granules of keys, as in the forward.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include <array>
#include <span>
#include <utility>

#include "backends/cpu/ops/attention_blocks.h"
#include "backends/cpu/ops/attention_key_tiles.h"
#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/fast_math.h"
#include "core/ops/attention.h"

namespace zl::cpu {

template <class T>
class HeadGroup {
 public:
  using A = Arithmetic<T>;

  // own: for what is kept between tiles; shared: with other groups of the same thread. ahead: what
  // is brought nearer while blocks are computed.
  HeadGroup(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head, Scratch<A>& own,
            Scratch<A>& shared, RowsAhead& ahead)
      : op_(op),
        ahead_(ahead),
        batch_(batch),
        kv_head_(kv_head),
        sequence_(op.shape.sequence),
        row_(batch * sequence_),
        band_(band_of(op.mask, op.shape, batch)),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)),
        tiles_(op, batch, kv_head, padded_) {
    tiles_.use(own.reserve(tiles_.elements()));
    A* next = shared.reserve(kTile * (3 * padded_ + 2 * width_ + 3 * kKeys) + 2 * kKeys * padded_);
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    queries_ = take(kTile * padded_), dout_ = take(kTile * padded_);
    dqueries_ = take(kTile * padded_);
    queries_t_ = take(kTile * width_), dout_t_ = take(kTile * width_);
    scores_ = take(kTile * kKeys), dscores_ = take(kTile * kKeys), factors_ = take(kTile * kKeys);
    keys_ = take(kKeys * padded_), values_ = take(kKeys * padded_);
  }

  // The part of a tile of queries, of all heads, in all gradients; tiles in ascending order.
  void add_queries(std::int64_t first) {
    const std::int64_t group = op_.shape.heads / op_.shape.kv_heads;
    for (std::int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) {
      add_queries(head, first);
    }
    if (!op_.mask.has_blocks() || (op_.mask.layouts > 1 && group > 1)) return;
    each_last_tile(op_.mask, op_.shape, kv_head_ * group, first,
                   [&](std::int64_t tile) { tiles_.store(tile); });
  }

  void finish() { tiles_.store_rest(); }

  // What the tile after the one at `first` meets of keys that this one does not.
  void look_ahead(std::int64_t first) const {
    const std::int64_t head = kv_head_ * (op_.shape.heads / op_.shape.kv_heads);
    const std::int64_t next = first + kTile;
    tiles_.look_ahead(ahead_);
    each_new_key(entries_of(op_.mask, op_.shape, head, first),
                 entries_of(op_.mask, op_.shape, head, next), next, [&](std::int64_t key) {
                   for (const ColumnsView& each : {op_.qkv.k, op_.qkv.v}) {
                     add_rows<T>(head_columns(each, kv_head_, width_), row_ + key, kGranule, width_,
                                 ahead_);
                   }
                   tiles_.look_ahead(key, kGranule, ahead_);
                 });
  }

 private:
  void add_queries(std::int64_t head, std::int64_t first) {
    plane_ = batch_ * op_.shape.heads + head;
    first_ = first;
    count_ = std::min(kTile, sequence_ - first);
    lanes_ = round_up(count_, kTileColumns<A>);
    load_queries(head);
    compute_delta(head);
    if (op_.mask.has_blocks()) {
      fresh_ = (1u << kGranules) - 1;
      each_group(op_.mask, op_.shape, head, first, [&](const BlockGroup& group) { add(group); });
      for (std::int64_t r = 0; r < kGranules; ++r) {
        if ((fresh_ >> r & 1) == 0) continue;
        std::fill_n(dqueries_ + r * kGranule * padded_, kGranule * padded_, A{0});
      }
    } else {
      std::fill(dqueries_, dqueries_ + kTile * padded_, A{0});
      const TileKeys seen(band_, op_.shape.first_position + first, count_);
      for (std::int64_t key = seen.begin; key < seen.end; key += kTile) {
        add_tile(key, std::min(kTile, seen.end - key));
      }
    }
    store_gradients<T>(op_, head_columns(op_.dqkv.q, head, width_), row_ + first, count_, padded_,
                       static_cast<A>(op_.scale), dqueries_);
  }

  void load_queries(std::int64_t head) {
    load_rows<T>(head_columns(op_.qkv.q, head, width_), row_ + first_, count_, width_, padded_,
                 static_cast<A>(op_.scale), queries_);
    load_rows<T>(output_columns(op_.dout, head, width_), row_ + first_, count_, width_, padded_,
                 A{1}, dout_);
    if (count_ < kTile) {
      std::fill(queries_ + count_ * padded_, queries_ + kTile * padded_, A{0});
      std::fill(dout_ + count_ * padded_, dout_ + kTile * padded_, A{0});
    }
    transpose(queries_, padded_, queries_t_, lanes_, lanes_, width_);
    transpose(dout_, padded_, dout_t_, lanes_, lanes_, width_);
  }

  // delta = rowsum(dout * out): what the softmax's backward subtracts.
  void compute_delta(std::int64_t head) {
    const HeadColumns columns = output_columns(op_.out, head, width_);
    A* delta = op_.delta.as<A>() + plane_ * sequence_ + first_;
    std::fill(delta_, delta_ + kTile, A{0});
    for (std::int64_t q = 0; q < count_; ++q) {
      const T* out =
          op_.out.as<const T>() + (row_ + first_ + q) * columns.row_width + columns.first;
      const A* dout = dout_ + q * padded_;
      delta_[q] = lane_sum<A>(width_, [&](std::int64_t d) { return dout[d] * widen<A>(out[d]); });
      delta[q] = delta_[q];
    }
    std::fill(lse_, lse_ + kTile, A{0});
    std::copy_n(op_.lse.as<const A>() + plane_ * sequence_ + first_, count_, lse_);
  }

  void add_tile(std::int64_t key, std::int64_t keys) {
    const std::int64_t rows = round_up(keys, kTileRows);
    auto& place = tiles_.at(key / kTile);
    const TileMask mask(band_, op_.shape.first_position + first_, count_, key, keys);
    const bool diagonal = mask.diagonal;
    const Part to_column = diagonal ? Part::rows_to_column : Part::all;
    const Part to_row = diagonal ? Part::depth_to_row : Part::all;
    const Part from_row = diagonal ? Part::depth_from_row : Part::all;
    multiply_block<A>({place.keys, padded_, 1}, rows, queries_t_, width_, lanes_, scores_, false,
                      to_column);
    multiply_block<A>({place.values, padded_, 1}, rows, dout_t_, width_, lanes_, dscores_, false,
                      to_column);
    if (op_.dropout.p > 0) {
      std::fill(factors_, factors_ + rows * lanes_, A{0});
      dropout_tile(op_.dropout, plane_, op_.shape, first_, count_, key, keys, lanes_, factors_);
      differentiate<true>(rows, keys, mask);
    } else {
      differentiate<false>(rows, keys, mask);
    }
    if (std::exchange(place.fresh, 0u) != 0) {  // of which these queries may see a part
      for (A* each : {place.dkeys, place.dvalues}) std::fill_n(each, kTile * padded_, A{0});
    }
    multiply_block<A>({scores_, lanes_, 1}, rows, dout_, count_, padded_, place.dvalues, true,
                      from_row);
    multiply_block<A>({dscores_, lanes_, 1}, rows, queries_, count_, padded_, place.dkeys, true,
                      from_row);
    multiply_block<A>({dscores_, 1, lanes_}, round_up(count_, kTileRows), place.keys, keys, padded_,
                      dqueries_, true, to_row);
  }

  // scores -> probabilities (dropped ones for dV); dscores: gradient of these -> of the scores.
  template <bool Dropout>
  void differentiate(std::int64_t rows, std::int64_t keys, const TileMask& mask) {
    for (std::int64_t k = 0; k < rows; ++k) {
      const std::int64_t begin = k < keys ? mask.first(k, lanes_) : lanes_;
      const std::int64_t end = k < keys ? mask.last(k, lanes_) : lanes_;
      A* score = scores_ + k * lanes_;
      A* dscore = dscores_ + k * lanes_;
      for (std::int64_t q = begin / kLanes<A> * kLanes<A>; q < end; q += kLanes<A>) {
        differentiate<Dropout>(k * lanes_ + q, load_vector(lse_ + q), load_vector(delta_ + q));
      }
      for (A* each : {score, dscore}) {
        std::fill(each, each + begin, A{0});
        std::fill(each + end, each + lanes_, A{0});
      }
    }
  }

  template <bool Dropout>
  void differentiate(std::int64_t at, Vector<A> lse, Vector<A> delta) {
    const Vector<A> probability = fast_exp(load_vector(scores_ + at) - lse);
    Vector<A> kept = broadcast(A{1});
    if constexpr (Dropout) kept = load_vector(factors_ + at);
    store_vector(scores_ + at, probability * kept);
    store_vector(dscores_ + at, probability * (load_vector(dscores_ + at) * kept - delta));
  }

  // As add_tile, of the granules of a group.
  void add(const BlockGroup& group) {
    load_granules<T>(op_.qkv, row_, kv_head_, width_, padded_, group, keys_, values_);
    const std::int64_t query_granules = round_up(count_, kGranule) / kGranule;
    for (std::int64_t i = 0; i < group.count; ++i) {
      const auto sees = [&](std::int64_t r) { return group.sees(i, r); };
      each_run(query_granules, sees, [&](std::int64_t begin, std::int64_t end) {
        add_part(i * kGranule, group.key(i), begin * kGranule, end * kGranule);
      });
    }
    for (std::int64_t r = 0; r < query_granules; ++r) add_dqueries(group, r);
  }

  // Keys [key, key + kGranule), whose scores are rows from `row` on, and queries of lanes [begin,
  // end): all but the gradient of the queries.
  void add_part(std::int64_t row, std::int64_t key, std::int64_t begin, std::int64_t end) {
    auto& place = tiles_.at(key / kTile);
    const std::int64_t offset = key % kTile * padded_, at = row * lanes_ + begin;
    multiply_part<A>({keys_ + row * padded_, padded_, 1}, kGranule, queries_t_ + begin, lanes_,
                     width_, end - begin, scores_ + at, lanes_, false, ahead_);
    multiply_part<A>({values_ + row * padded_, padded_, 1}, kGranule, dout_t_ + begin, lanes_,
                     width_, end - begin, dscores_ + at, lanes_, false, ahead_);
    if (op_.dropout.p > 0) {
      dropout_tile(op_.dropout, plane_, op_.shape, first_, count_, key, kGranule, lanes_,
                   factors_ + row * lanes_);
      differentiate_part<true>(row, begin, end);
    } else {
      differentiate_part<false>(row, begin, end);
    }
    hide(row, key, begin, end);
    const bool adds = !place.is_first(key % kTile);
    const Part part = is_diagonal(key, begin) ? Part::depth_from_row : Part::all;
    multiply_part<A>({scores_ + at, lanes_, 1}, kGranule, dout_ + begin * padded_, padded_,
                     end - begin, padded_, place.dvalues + offset, padded_, adds, ahead_, part);
    multiply_part<A>({dscores_ + at, lanes_, 1}, kGranule, queries_ + begin * padded_, padded_,
                     end - begin, padded_, place.dkeys + offset, padded_, adds, ahead_, part);
  }

  // As differentiate, of a granule's rows from `row` on.
  template <bool Dropout>
  void differentiate_part(std::int64_t row, std::int64_t begin, std::int64_t end) {
    for (std::int64_t q = begin; q < end; q += kLanes<A>) {
      const Vector<A> lse = load_vector(lse_ + q), delta = load_vector(delta_ + q);
      for (std::int64_t at = row * lanes_ + q; at < (row + kGranule) * lanes_; at += lanes_) {
        differentiate<Dropout>(at, lse, delta);
      }
    }
  }

  // What no query sees of them: keys behind it, and padding.
  void hide(std::int64_t row, std::int64_t key, std::int64_t begin, std::int64_t end) {
    for (A* each : {scores_ + row * lanes_, dscores_ + row * lanes_}) {
      if (is_diagonal(key, begin)) hide_behind_diagonal(each + begin, lanes_, A{0});
      for (std::int64_t k = std::clamp<std::int64_t>(band_.limit - key, 0, kGranule); k < kGranule;
           ++k) {
        std::fill(each + k * lanes_ + begin, each + k * lanes_ + end, A{0});
      }
    }
  }

  // Whether queries from the lane on see of keys from this one on those up to their own.
  bool is_diagonal(std::int64_t key, std::int64_t lane) const {
    return band_.ahead == 0 && key == first_ + lane;
  }

  // Of the queries of granule r.
  void add_dqueries(const BlockGroup& group, std::int64_t r) {
    std::array<GranuleFactors<A>, kMostTogether> factors;
    std::size_t count = 0;
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < group.count; ++i) {
      if (!group.sees(i, r)) continue;
      last = group.key(i);
      factors[count++] = {dscores_ + i * kGranule * lanes_ + r * kGranule,
                          keys_ + i * kGranule * padded_};
    }
    if (count == 0) return;
    const unsigned bit = 1u << r;
    const bool adds = (std::exchange(fresh_, fresh_ & ~bit) & bit) == 0;
    multiply_granules<A>(std::span(factors).first(count), lanes_, padded_,
                         is_diagonal(last, r * kGranule), dqueries_ + r * kGranule * padded_, adds,
                         ahead_);
  }

  static constexpr std::int64_t kKeys = std::max(kTile, kMostTogether* kGranule);

  const AttentionBackward& op_;
  RowsAhead& ahead_;
  std::int64_t batch_, kv_head_, sequence_, row_;
  KeyBand band_;
  std::int64_t width_, padded_;
  KeyTiles<T> tiles_;
  std::int64_t plane_ = 0, first_ = 0, count_ = 0, lanes_ = 0;  // the current tile of queries
  A *queries_, *dout_, *dqueries_;                              // [kTile][padded]
  A *queries_t_, *dout_t_;                                      // [width][lanes]
  A *scores_, *dscores_, *factors_;                             // [key][query]
  A *keys_, *values_;                                           // of a group of blocks
  unsigned fresh_ = 0;  // a bit for each granule of dqueries_ that nobody has written
  A lse_[kTile], delta_[kTile];
};

}  // namespace zl::cpu
