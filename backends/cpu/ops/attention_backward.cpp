// Attention backward: probabilities recomputed tile by tile (Dao et al. 2022, algorithm 4).
#include <utility>

#include "backends/cpu/ops/attention_blocks.h"
#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/fast_math.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/attention.h"
#include "core/ops/elementwise.h"

namespace zl::cpu {
namespace {

// All query heads of one kv head of one sequence: the unit that owns its part of dqkv.
template <class T>
class HeadGroup {
 public:
  using A = Arithmetic<T>;

  HeadGroup(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head)
      : op_(op),
        batch_(batch),
        kv_head_(kv_head),
        sequence_(op.shape.sequence),
        row_(batch * sequence_),
        key_count_(op.shape.key_count()),
        band_(band_of(op.mask, op.shape, batch)),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)) {
    static thread_local Scratch<A> scratch;
    const std::int64_t rows = round_up(key_count_, kTile);
    A* next = scratch.reserve(4 * rows * padded_ + kTile * (3 * padded_ + 2 * width_ + 3 * kTile));
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    keys_ = take(rows * padded_), values_ = take(rows * padded_);
    dkeys_ = take(rows * padded_), dvalues_ = take(rows * padded_);
    queries_ = take(kTile * padded_), dout_ = take(kTile * padded_);
    dqueries_ = take(kTile * padded_);
    queries_t_ = take(kTile * width_), dout_t_ = take(kTile * width_);
    scores_ = take(kTile * kTile), dscores_ = take(kTile * kTile), factors_ = take(kTile * kTile);
    for (A* each : {keys_, values_}) {  // run() fills them up to the last key
      std::fill(each + key_count_ * padded_, each + rows * padded_, A{0});
    }
    std::fill(dkeys_, dkeys_ + rows * padded_, A{0});
    std::fill(dvalues_, dvalues_ + rows * padded_, A{0});
  }

  void run() {
    const AttentionShape& shape = op_.shape;
    const std::int64_t row = batch_ * key_count_;
    load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), row, key_count_, width_, padded_, A{1},
                 keys_);
    load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), row, key_count_, width_, padded_, A{1},
                 values_);
    const std::int64_t group = shape.heads / shape.kv_heads;
    for (std::int64_t head = kv_head_ * group; head < (kv_head_ + 1) * group; ++head) {
      for (std::int64_t first = 0; first < sequence_; first += kTile) add_queries(head, first);
    }
    store_rows<T>(head_columns(op_.dqkv.k, kv_head_, width_), row, key_count_, width_, padded_,
                  A{1}, dkeys_);
    store_rows<T>(head_columns(op_.dqkv.v, kv_head_, width_), row, key_count_, width_, padded_,
                  A{1}, dvalues_);
  }

 private:
  // The part of one tile of queries in all gradients.
  void add_queries(std::int64_t head, std::int64_t first) {
    plane_ = batch_ * op_.shape.heads + head;
    first_ = first;
    count_ = std::min(kTile, sequence_ - first);
    lanes_ = round_up(count_, kTileColumns<A>);
    load_queries(head);
    compute_delta(head);
    std::fill(dqueries_, dqueries_ + kTile * padded_, A{0});
    if (op_.mask.has_blocks()) {
      each_group(op_.mask, op_.shape, head, first, [&](const BlockGroup& group) { add(group); });
    } else {
      const TileKeys seen(band_, op_.shape.first_position + first, count_);
      for (std::int64_t key = seen.begin; key < seen.end; key += kTile) {
        add_tile(key, std::min(kTile, seen.end - key));
      }
    }
    store_rows<T>(head_columns(op_.dqkv.q, head, width_), row_ + first, count_, width_, padded_,
                  static_cast<A>(op_.scale), dqueries_);
  }

  void load_queries(std::int64_t head) {
    load_rows<T>(head_columns(op_.qkv.q, head, width_), row_ + first_, count_, width_, padded_,
                 static_cast<A>(op_.scale), queries_);
    load_rows<T>(output_columns(op_.dout, head, width_), row_ + first_, count_, width_, padded_,
                 A{1}, dout_);
    std::fill(queries_ + count_ * padded_, queries_ + kTile * padded_, A{0});
    std::fill(dout_ + count_ * padded_, dout_ + kTile * padded_, A{0});
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
    const std::int64_t offset = key * padded_, rows = round_up(keys, kTileRows);
    const TileMask mask(band_, op_.shape.first_position + first_, count_, key, keys);
    const bool diagonal = mask.diagonal;
    const Part to_column = diagonal ? Part::rows_to_column : Part::all;
    const Part to_row = diagonal ? Part::depth_to_row : Part::all;
    const Part from_row = diagonal ? Part::depth_from_row : Part::all;
    multiply_block<A>({keys_ + offset, padded_, 1}, rows, queries_t_, width_, lanes_, scores_,
                      false, to_column);
    multiply_block<A>({values_ + offset, padded_, 1}, rows, dout_t_, width_, lanes_, dscores_,
                      false, to_column);
    if (op_.dropout.p > 0) {
      std::fill(factors_, factors_ + rows * lanes_, A{0});
      dropout_tile(op_.dropout, plane_, op_.shape, first_, count_, key, keys, lanes_, factors_);
      differentiate<true>(rows, keys, mask);
    } else {
      differentiate<false>(rows, keys, mask);
    }
    multiply_block<A>({scores_, lanes_, 1}, rows, dout_, count_, padded_, dvalues_ + offset, true,
                      from_row);
    multiply_block<A>({dscores_, lanes_, 1}, rows, queries_, count_, padded_, dkeys_ + offset, true,
                      from_row);
    multiply_block<A>({dscores_, 1, lanes_}, round_up(count_, kTileRows), keys_ + offset, keys,
                      padded_, dqueries_, true, to_row);
  }

  // scores -> probabilities (dropped ones for dV); dscores: gradient of these -> of the scores.
  template <bool Dropout>
  void differentiate(std::int64_t rows, std::int64_t keys, const TileMask& mask) {
    for (std::int64_t k = 0; k < rows; ++k) {
      const std::int64_t begin = k < keys ? mask.first(k, lanes_) : lanes_;
      const std::int64_t end = k < keys ? mask.last(k, lanes_) : lanes_;
      differentiate_lanes<Dropout>(k, 0, begin, end, lanes_);
    }
  }

  // Of row k the lanes [first, last), of which those in [begin, end) are seen.
  template <bool Dropout>
  void differentiate_lanes(std::int64_t k, std::int64_t first, std::int64_t begin, std::int64_t end,
                           std::int64_t last) {
    A* __restrict score = scores_ + k * lanes_;
    A* __restrict dscore = dscores_ + k * lanes_;
    const A* __restrict factor = factors_ + k * lanes_;
    for (A* each : {score, dscore}) {
      std::fill(each + first, each + begin, A{0});
      std::fill(each + end, each + last, A{0});
    }
    for (std::int64_t q = begin; q < end; ++q) {
      const A probability = fast_exp(score[q] - lse_[q]);
      const A kept = Dropout ? factor[q] : A{1};
      score[q] = probability * kept;
      dscore[q] = probability * (dscore[q] * kept - delta_[q]);
    }
  }

  // As add_tile, of the granules of a group.
  void add(const BlockGroup& group) {
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
    const std::int64_t offset = key * padded_, at = row * lanes_ + begin;
    multiply_part<A>({keys_ + offset, padded_, 1}, kGranule, queries_t_ + begin, lanes_, width_,
                     end - begin, scores_ + at, lanes_, false);
    multiply_part<A>({values_ + offset, padded_, 1}, kGranule, dout_t_ + begin, lanes_, width_,
                     end - begin, dscores_ + at, lanes_, false);
    const bool drops = op_.dropout.p > 0;
    if (drops) {
      dropout_tile(op_.dropout, plane_, op_.shape, first_, count_, key, kGranule, lanes_,
                   factors_ + row * lanes_);
    }
    const TileMask mask(band_, op_.shape.first_position + first_, count_, key, kGranule);
    for (std::int64_t k = 0; k < kGranule; ++k) {
      const bool hidden = key + k >= band_.limit;
      const std::int64_t from = hidden ? end : std::clamp(mask.first(k, lanes_), begin, end);
      drops ? differentiate_lanes<true>(row + k, begin, from, end, end)
            : differentiate_lanes<false>(row + k, begin, from, end, end);
    }
    multiply_part<A>({scores_ + at, lanes_, 1}, kGranule, dout_ + begin * padded_, padded_,
                     end - begin, padded_, dvalues_ + offset, padded_, true);
    multiply_part<A>({dscores_ + at, lanes_, 1}, kGranule, queries_ + begin * padded_, padded_,
                     end - begin, padded_, dkeys_ + offset, padded_, true);
  }

  // Of the queries of granule r, over runs of neighbouring granules of keys.
  void add_dqueries(const BlockGroup& group, std::int64_t r) {
    for (std::int64_t begin = 0; begin < group.count; ++begin) {
      if (!group.sees(begin, r)) continue;
      std::int64_t end = begin + 1;
      while (end < group.count && group.sees(end, r) &&
             group.key(end) == group.key(end - 1) + kGranule) {
        ++end;
      }
      multiply_part<A>({dscores_ + begin * kGranule * lanes_ + r * kGranule, 1, lanes_}, kGranule,
                       keys_ + group.key(begin) * padded_, padded_, (end - begin) * kGranule,
                       padded_, dqueries_ + r * kGranule * padded_, padded_, true);
      begin = end - 1;
    }
  }

  const AttentionBackward& op_;
  std::int64_t batch_, kv_head_, sequence_, row_, key_count_;
  KeyBand band_;
  std::int64_t width_, padded_;
  std::int64_t plane_ = 0, first_ = 0, count_ = 0, lanes_ = 0;  // the current tile of queries
  A *keys_, *values_, *dkeys_, *dvalues_;                       // [key][padded]
  A *queries_, *dout_, *dqueries_;                              // [kTile][padded]
  A *queries_t_, *dout_t_;                                      // [width][lanes]
  A *scores_, *dscores_, *factors_;                             // [key][query]
  A lse_[kTile], delta_[kTile];
};

}  // namespace

void execute(const AttentionBackward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    parallel_tasks(context, op.shape.batch * op.shape.kv_heads, [&](std::int64_t task) {
      HeadGroup<decltype(type)>(op, task / op.shape.kv_heads, task % op.shape.kv_heads).run();
    });
  });
}

}  // namespace zl::cpu
