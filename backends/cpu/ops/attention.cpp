// Attention forward: online softmax over tiles of keys (Dao et al. 2022, algorithm 1).
#include <cmath>
#include <limits>
#include <utility>

#include "backends/cpu/ops/attention_block_queries.h"
#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/fast_math.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/attention.h"

namespace zl::cpu {
namespace {

// One tile of queries of one head, with the running maximum and sum of each query's softmax.
template <class T>
class QueryTile {
 public:
  using A = Arithmetic<T>;

  QueryTile(const AttentionForward& op, std::int64_t plane, std::int64_t first)
      : op_(op),
        plane_(plane),
        first_(first),
        position_(op.shape.first_position + first),
        width_(op.shape.head_size),
        padded_(round_up(width_, kTileColumns<A>)),
        queries_(std::min(kTile, op.shape.sequence - first)),
        lanes_(round_up(queries_, kTileColumns<A>)),
        batch_(plane / op.shape.heads),
        head_(plane % op.shape.heads),
        kv_head_(head_ / (op.shape.heads / op.shape.kv_heads)),
        band_(band_of(op.mask, op.shape, batch_)) {
    static thread_local Scratch<A> scratch;
    A* next = scratch.reserve(kTile * (4 * padded_ + width_ + 2 * kTile));
    const auto take = [&next](std::int64_t count) { return std::exchange(next, next + count); };
    queries_t_ = take(width_ * kTile);
    keys_ = take(kTile * padded_);
    values_ = take(kTile * padded_);
    out_ = take(kTile * padded_);
    scores_ = take(kTile * kTile);
    factors_ = take(kTile * kTile);
    load_queries(take(kTile * padded_));
  }

  void run() {
    std::fill(maximum_, maximum_ + kTile, -std::numeric_limits<A>::infinity());
    std::fill(sum_, sum_ + kTile, A{0});
    std::fill(out_, out_ + kTile * padded_, A{0});
    const TileKeys seen(band_, position_, queries_);
    for (std::int64_t key = seen.begin; key < seen.end; key += kTile) {
      add_keys(key, std::min(kTile, seen.end - key));
    }
    finish();
  }

 private:
  void load_queries(A* tile) {
    if (queries_ < kTile) std::fill(tile, tile + kTile * padded_, A{0});
    load_rows<T>(head_columns(op_.qkv.q, head_, width_), batch_ * op_.shape.sequence + first_,
                 queries_, width_, padded_, static_cast<A>(op_.scale), tile);
    transpose(tile, padded_, queries_t_, lanes_, lanes_, width_);
  }

  void add_keys(std::int64_t key, std::int64_t keys) {
    const std::int64_t rows = round_up(keys, kTileRows);
    const std::int64_t row = batch_ * op_.shape.key_count() + key;
    load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), row, keys, width_, padded_, A{1},
                 keys_);
    load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), row, keys, width_, padded_, A{1},
                 values_);
    std::fill(keys_ + keys * padded_, keys_ + rows * padded_, A{0});
    const TileMask mask(band_, position_, queries_, key, keys);
    multiply_block<A>({keys_, padded_, 1}, rows, queries_t_, width_, lanes_, scores_, false,
                      mask.diagonal ? Part::rows_to_column : Part::all);
    if (!mask.whole) apply(mask, keys, scores_);
    update_softmax(keys);
    if (op_.dropout.p > 0) drop(key, keys, scores_);
    // Rows of `lanes_` past `queries_` are computed and never stored.
    multiply_block<A>({scores_, 1, lanes_}, round_up(queries_, kTileRows), values_, keys, padded_,
                      out_, true, mask.diagonal ? Part::depth_to_row : Part::all);
  }

  void apply(const TileMask& mask, std::int64_t keys, A* scores) {
    for (std::int64_t k = 0; k < keys; ++k) {
      A* score = scores + k * lanes_;
      std::fill(score, score + mask.first(k, lanes_), kUnseen);
      std::fill(score + mask.last(k, lanes_), score + lanes_, kUnseen);
    }
  }

  // Scores of `keys` keys become probabilities against the new maxima; earlier sums are rescaled.
  void update_softmax(std::int64_t keys) {
    const Vector<A> lowest = broadcast(std::numeric_limits<A>::lowest());  // where nothing is seen
    A keep[kTile];
    for (std::int64_t lane = 0; lane < lanes_; lane += kLanes<A>) {
      A* column = scores_ + lane;
      const Vector<A> before = load_vector(maximum_ + lane);
      Vector<A> peak = before, sum = {};
      for (std::int64_t k = 0; k < keys; ++k) {
        const Vector<A> score = load_vector(column + k * lanes_);
        peak = score > peak ? score : peak;
      }
      peak = peak > lowest ? peak : lowest;
      for (std::int64_t k = 0; k < keys; ++k) {
        const Vector<A> probability = fast_exp(load_vector(column + k * lanes_) - peak);
        store_vector(column + k * lanes_, probability);
        sum += probability;
      }
      const Vector<A> kept = fast_exp(before - peak);
      store_vector(keep + lane, kept);
      store_vector(sum_ + lane, load_vector(sum_ + lane) * kept + sum);
      store_vector(maximum_ + lane, peak);
    }
    for (std::int64_t q = 0; q < queries_; ++q) {
      if (keep[q] == A{1}) continue;
      A* __restrict out = out_ + q * padded_;
      for (std::int64_t d = 0; d < padded_; ++d) out[d] *= keep[q];
    }
  }

  void drop(std::int64_t key, std::int64_t keys, A* probabilities) {
    std::fill(factors_, factors_ + keys * lanes_, A{0});
    dropout_tile(op_.dropout, plane_, op_.shape, first_, queries_, key, keys, lanes_, factors_);
    for (std::int64_t i = 0; i < keys * lanes_; ++i) probabilities[i] *= factors_[i];
  }

  void finish() {
    A* lse = op_.lse.as<A>() + plane_ * op_.shape.sequence + first_;
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
  std::int64_t plane_, first_, position_, width_, padded_, queries_, lanes_, batch_, head_;
  std::int64_t kv_head_;
  KeyBand band_;
  A *queries_t_, *keys_, *values_, *out_, *scores_, *factors_;
  A maximum_[kTile], sum_[kTile];
};

// One head after the other, while its keys are in the cache; where blocks are so few that those of
// all heads are, one tile after the other, whose rows lie side by side in memory.
template <class T>
void run_blocks(const AttentionForward& op, const ExecContext& context, std::int64_t tiles) {
  const std::int64_t heads = op.shape.heads, all = op.shape.batch * heads * tiles;
  const bool by_tile = held_bytes<T>(op.mask, op.shape, 2) <= kCacheBytes;
  const auto place = [&](std::int64_t i) {
    const std::int64_t row = by_tile ? i / heads : i;
    const std::int64_t plane = by_tile ? row / tiles * heads + i % heads : i / tiles;
    return std::pair(plane, (tiles - 1 - row % tiles) * kTile);  // long rows first
  };
  const std::int64_t together = by_tile ? heads : 1;
  parallel_tasks(context, all / together, [&](std::int64_t task) {
    for (std::int64_t i = task * together; i < (task + 1) * together; ++i) {
      const auto here = place(i), next = place(std::min(i + 1, all - 1));
      BlockQueries<T>(op, here.first, here.second).run(next.first, next.second);
    }
  });
}

}  // namespace

void execute(const AttentionForward& op, const ExecContext& context) {
  const std::int64_t tiles = (op.shape.sequence + kTile - 1) / kTile;
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if (op.mask.has_blocks()) return run_blocks<T>(op, context, tiles);
    parallel_tasks(context, op.shape.batch * op.shape.heads * tiles, [&](std::int64_t task) {
      const std::int64_t tile = tiles - 1 - task % tiles;  // long rows first
      QueryTile<T>(op, task / tiles, tile * kTile).run();
    });
  });
}

}  // namespace zl::cpu
