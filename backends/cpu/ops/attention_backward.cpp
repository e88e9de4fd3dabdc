// Attention backward: probabilities recomputed tile by tile (Dao et al. 2022, algorithm 4).
#include <utility>
#include <vector>

#include "backends/cpu/ops/attention_blocks.h"
#include "backends/cpu/ops/attention_key_tiles.h"
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

  HeadGroup(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
            Scratch<A>& scratch)
      : op_(op),
        batch_(batch),
        kv_head_(kv_head),
        sequence_(op.shape.sequence),
        row_(batch * sequence_),
        band_(band_of(op.mask, op.shape, batch)),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)),
        tiles_(op, batch, kv_head, padded_) {
    A* next = scratch.reserve(tiles_.elements() + kTile * (3 * padded_ + 2 * width_ + 3 * kTile));
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    queries_ = take(kTile * padded_), dout_ = take(kTile * padded_);
    dqueries_ = take(kTile * padded_);
    queries_t_ = take(kTile * width_), dout_t_ = take(kTile * width_);
    scores_ = take(kTile * kTile), dscores_ = take(kTile * kTile), factors_ = take(kTile * kTile);
    tiles_.use(next);
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
    store_rows<T>(head_columns(op_.dqkv.q, head, width_), row_ + first, count_, width_, padded_,
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
      differentiate_lanes<Dropout>(k, 0, begin, end, lanes_);
    }
  }

  // Of row k the lanes [first, last), of which those in [begin, end) are seen.
  template <bool Dropout>
  void differentiate_lanes(std::int64_t k, std::int64_t first, std::int64_t begin, std::int64_t end,
                           std::int64_t last) {
    A* score = scores_ + k * lanes_;
    A* dscore = dscores_ + k * lanes_;
    for (std::int64_t q = begin / kLanes<A> * kLanes<A>; q < end; q += kLanes<A>) {
      const Vector<A> probability = fast_exp(load_vector(score + q) - load_vector(lse_ + q));
      Vector<A> kept = broadcast(A{1});
      if constexpr (Dropout) kept = load_vector(factors_ + k * lanes_ + q);
      store_vector(score + q, probability * kept);
      store_vector(dscore + q,
                   probability * (load_vector(dscore + q) * kept - load_vector(delta_ + q)));
    }
    for (A* each : {score, dscore}) {
      std::fill(each + first, each + begin, A{0});
      std::fill(each + end, each + last, A{0});
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
    auto& place = tiles_.at(key / kTile);
    const std::int64_t offset = key % kTile * padded_, at = row * lanes_ + begin;
    multiply_part<A>({place.keys + offset, padded_, 1}, kGranule, queries_t_ + begin, lanes_,
                     width_, end - begin, scores_ + at, lanes_, false);
    multiply_part<A>({place.values + offset, padded_, 1}, kGranule, dout_t_ + begin, lanes_, width_,
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
    const bool adds = !place.is_first(key % kTile);
    const Part part = is_diagonal(key, begin) ? Part::depth_from_row : Part::all;
    multiply_part<A>({scores_ + at, lanes_, 1}, kGranule, dout_ + begin * padded_, padded_,
                     end - begin, padded_, place.dvalues + offset, padded_, adds, part);
    multiply_part<A>({dscores_ + at, lanes_, 1}, kGranule, queries_ + begin * padded_, padded_,
                     end - begin, padded_, place.dkeys + offset, padded_, adds, part);
  }

  // Whether queries from the lane on see of keys from this one on those up to their own.
  bool is_diagonal(std::int64_t key, std::int64_t lane) const {
    return band_.ahead == 0 && key == first_ + lane;
  }

  // Of the queries of granule r, over runs of granules of keys that lie together.
  void add_dqueries(const BlockGroup& group, std::int64_t r) {
    const auto keys = [&](std::int64_t i) {
      return tiles_.at(group.key(i) / kTile).keys + group.key(i) % kTile * padded_;
    };
    for (std::int64_t begin = 0; begin < group.count; ++begin) {
      if (!group.sees(begin, r)) continue;
      std::int64_t end = begin + 1;
      while (end < group.count && group.sees(end, r) &&
             keys(end) == keys(end - 1) + kGranule * padded_) {
        ++end;
      }
      const unsigned bit = 1u << r;
      const bool adds = (std::exchange(fresh_, fresh_ & ~bit) & bit) == 0;
      multiply_part<A>(
          {dscores_ + begin * kGranule * lanes_ + r * kGranule, 1, lanes_}, kGranule, keys(begin),
          padded_, (end - begin) * kGranule, padded_, dqueries_ + r * kGranule * padded_, padded_,
          adds, is_diagonal(group.key(end - 1), r * kGranule) ? Part::depth_to_row : Part::all);
      begin = end - 1;
    }
  }

  const AttentionBackward& op_;
  std::int64_t batch_, kv_head_, sequence_, row_;
  KeyBand band_;
  std::int64_t width_, padded_;
  KeyTiles<T> tiles_;
  std::int64_t plane_ = 0, first_ = 0, count_ = 0, lanes_ = 0;  // the current tile of queries
  A *queries_, *dout_, *dqueries_;                              // [kTile][padded]
  A *queries_t_, *dout_t_;                                      // [width][lanes]
  A *scores_, *dscores_, *factors_;                             // [key][query]
  unsigned fresh_ = 0;  // a bit for each granule of dqueries_ that nobody has written
  A lse_[kTile], delta_[kTile];
};

constexpr std::int64_t kMostTogether = 4;

// How many kv heads go through a sequence together, since their rows lie side by side in memory:
// where so few blocks exist that what they hold fits the cache.
template <class T>
std::int64_t heads_together(const AttentionBackward& op, const ExecContext& context) {
  if (!op.mask.has_blocks()) return 1;
  const AttentionShape& shape = op.shape;
  const std::int64_t held = held_bytes<T>(op.mask, op.shape, 4) / shape.heads;
  for (std::int64_t heads = kMostTogether; heads > 1; --heads) {
    const bool even = shape.kv_heads % heads == 0 &&
                      shape.batch * shape.kv_heads / heads % std::max(context.threads, 1) == 0;
    if (even && heads * held <= kCacheBytes) return heads;
  }
  return 1;
}

}  // namespace

void execute(const AttentionBackward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    using A = Arithmetic<T>;
    const AttentionShape& shape = op.shape;
    const std::int64_t together = heads_together<T>(op, context);
    const std::int64_t parts = shape.kv_heads / together;
    parallel_tasks(context, shape.batch * parts, [&](std::int64_t task) {
      static thread_local std::vector<Scratch<A>> scratch(kMostTogether);
      std::vector<HeadGroup<T>> groups;
      groups.reserve(static_cast<std::size_t>(together));
      for (std::int64_t i = 0; i < together; ++i) {
        groups.emplace_back(op, task / parts, task % parts * together + i,
                            scratch[static_cast<std::size_t>(i)]);
      }
      for (std::int64_t first = 0; first < shape.sequence; first += kTile) {
        for (HeadGroup<T>& group : groups) group.add_queries(first);
      }
      for (HeadGroup<T>& group : groups) group.finish();
    });
  });
}

}  // namespace zl::cpu
