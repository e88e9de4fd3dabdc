// Attention backward of all query heads of one kv head of one sequence: what owns a part of dqkv.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include <utility>

#include "backends/cpu/ops/attention_key_tiles.h"
#include "backends/cpu/ops/attention_query_rows.h"
#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/fast_math.h"
#include "core/ops/attention.h"

namespace zl::cpu {

template <class T>
class HeadGroup {
 public:
  using A = Arithmetic<T>;

  // own: for the gradients of the keys; shared: with other groups of the same thread.
  HeadGroup(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head, Scratch<A>& own,
            Scratch<A>& shared)
      : op_(op),
        batch_(batch),
        kv_head_(kv_head),
        sequence_(op.shape.sequence),
        band_(band_of(op.mask, op.shape, batch)),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)),
        tiles_(op, batch, kv_head, padded_),
        rows_(op, padded_) {
    tiles_.use(own.reserve(tiles_.elements()));
    const std::int64_t of_rows = QueryRows<T>::elements(width_, padded_);
    A* next = shared.reserve(of_rows + kTile * (padded_ + 3 * kTile));
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    rows_.use(take(of_rows));
    dqueries_ = take(kTile * padded_);
    scores_ = take(kTile * kTile), dscores_ = take(kTile * kTile), factors_ = take(kTile * kTile);
  }

  // The part of a tile of queries, of all heads, in all gradients.
  void add_queries(std::int64_t first) {
    const std::int64_t group = op_.shape.heads / op_.shape.kv_heads;
    for (std::int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) {
      add_queries(head, first);
    }
  }

  void finish() { tiles_.store(); }

 private:
  void add_queries(std::int64_t head, std::int64_t first) {
    plane_ = batch_ * op_.shape.heads + head;
    first_ = first;
    count_ = std::min(kTile, sequence_ - first);
    lanes_ = round_up(count_, kTileColumns<A>);
    rows_.load(plane_, first, count_, lanes_);
    std::fill(dqueries_, dqueries_ + kTile * padded_, A{0});
    const TileKeys seen(band_, op_.shape.first_position + first, count_);
    for (std::int64_t key = seen.begin; key < seen.end; key += kTile) {
      add_tile(key, std::min(kTile, seen.end - key));
    }
    store_rows<T>(head_columns(op_.dqkv.q, head, width_), batch_ * sequence_ + first, count_,
                  width_, padded_, static_cast<A>(op_.scale), dqueries_);
  }

  void add_tile(std::int64_t key, std::int64_t keys) {
    const std::int64_t rows = round_up(keys, kTileRows);
    const auto& place = tiles_.at(key / kTile);
    const TileMask mask(band_, op_.shape.first_position + first_, count_, key, keys);
    const bool diagonal = mask.diagonal;
    const Part to_column = diagonal ? Part::rows_to_column : Part::all;
    const Part to_row = diagonal ? Part::depth_to_row : Part::all;
    const Part from_row = diagonal ? Part::depth_from_row : Part::all;
    multiply_block<A>({place.keys, padded_, 1}, rows, rows_.queries_t(), width_, lanes_, scores_,
                      false, to_column);
    multiply_block<A>({place.values, padded_, 1}, rows, rows_.dout_t(), width_, lanes_, dscores_,
                      false, to_column);
    if (op_.dropout.p > 0) {
      std::fill(factors_, factors_ + rows * lanes_, A{0});
      dropout_tile(op_.dropout, plane_, op_.shape, first_, count_, key, keys, lanes_, factors_);
      differentiate<true>(rows, keys, mask);
    } else {
      differentiate<false>(rows, keys, mask);
    }
    multiply_block<A>({scores_, lanes_, 1}, rows, rows_.dout(), count_, padded_, place.dvalues,
                      true, from_row);
    multiply_block<A>({dscores_, lanes_, 1}, rows, rows_.queries(), count_, padded_, place.dkeys,
                      true, from_row);
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
        differentiate<Dropout>(k * lanes_ + q, load_vector(rows_.lse(q)),
                               load_vector(rows_.delta(q)));
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

  const AttentionBackward& op_;
  std::int64_t batch_, kv_head_, sequence_;
  KeyBand band_;
  std::int64_t width_, padded_;
  KeyTiles<T> tiles_;
  std::int64_t plane_ = 0, first_ = 0, count_ = 0, lanes_ = 0;  // the current tile of queries
  QueryRows<T> rows_;
  A* dqueries_;                      // [kTile][padded]
  A *scores_, *dscores_, *factors_;  // [key][query]
};

}  // namespace zl::cpu
