// Attention forward: online softmax over tiles of keys (Dao et al. 2022, algorithm 1).
#include <utility>

#include "backends/cpu/ops/attention_block_queries.h"
#include "backends/cpu/ops/attention_softmax.h"
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
    softmax_.clear();
    std::fill(out_, out_ + kTile * padded_, A{0});
    const TileKeys seen(band_, position_, queries_);
    for (std::int64_t key = seen.begin; key < seen.end; key += kTile) {
      add_keys(key, std::min(kTile, seen.end - key));
    }
    store();
  }

 private:
  void store() {
    A factors[kTile];
    softmax_.end(op_, plane_, first_, 0, queries_, factors);
    const HeadColumns columns = output_columns(op_.out, head_, width_);
    const std::int64_t row = batch_ * op_.shape.sequence + first_;
    for (std::int64_t q = 0; q < queries_; ++q) {
      store_rows<T>(columns, row + q, 1, width_, padded_, factors[q], out_ + q * padded_);
    }
  }

  void load_queries(A* tile) {
    if (queries_ < kTile) std::fill(tile, tile + kTile * padded_, A{0});
    load_rows<T>(head_columns(op_.qkv.q, head_, width_), batch_ * op_.shape.sequence + first_,
                 queries_, width_, padded_, static_cast<A>(op_.scale), tile);
    transpose(tile, padded_, queries_t_, lanes_, lanes_, width_);
  }

  void add_keys(std::int64_t key, std::int64_t keys) {
    const std::int64_t rows = round_up(keys, kTileRows);
    const std::int64_t row = batch_ * op_.shape.key_count() + key;
    load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), row, keys, width_, padded_, Unscaled{},
                 keys_);
    load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), row, keys, width_, padded_, Unscaled{},
                 values_);
    std::fill(keys_ + keys * padded_, keys_ + rows * padded_, A{0});
    const TileMask mask(band_, position_, queries_, key, keys);
    multiply_block<A>({keys_, padded_, 1}, rows, queries_t_, width_, lanes_, scores_, false,
                      mask.diagonal ? Part::rows_to_column : Part::all);
    if (!mask.whole) apply(mask, keys, scores_);
    A keep[kTile];
    softmax_.add(scores_, lanes_, keys, 0, lanes_, keep);
    rescale_rows(keep, queries_, padded_, out_);
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

  void drop(std::int64_t key, std::int64_t keys, A* probabilities) {
    std::fill(factors_, factors_ + keys * lanes_, A{0});
    dropout_tile(op_.dropout, plane_, op_.shape, first_, queries_, key, keys, lanes_, factors_);
    for (std::int64_t i = 0; i < keys * lanes_; ++i) probabilities[i] *= factors_[i];
  }

  static constexpr A kUnseen = RunningSoftmax<A>::kUnseen;

  const AttentionForward& op_;
  std::int64_t plane_, first_, position_, width_, padded_, queries_, lanes_, batch_, head_;
  std::int64_t kv_head_;
  KeyBand band_;
  A *queries_t_, *keys_, *values_, *out_, *scores_, *factors_;
  RunningSoftmax<A> softmax_;
};

// One head after the other, while its keys are in the cache; where blocks are so few that those of
// all heads are, one tile after the other, whose rows lie side by side in memory.
template <class T>
void run_blocks(const AttentionForward& op, const ExecContext& context, std::int64_t tiles) {
  const std::int64_t heads = op.shape.heads;
  const bool by_tile = held_bytes<T>(op.mask, op.shape, 2) <= cache_bytes();
  const std::int64_t together = by_tile ? heads : 1;
  const std::int64_t tasks = op.shape.batch * heads * tiles / together;
  const auto first_of = [&](std::int64_t task) { return (tiles - 1 - task % tiles) * kTile; };
  parallel_tasks(context, tasks, [&](std::int64_t task) {  // long rows first
    // What the thread is likely to do next, where all are as fast.
    const std::int64_t next = std::min(task + std::max(context.threads, 1), tasks - 1);
    for (std::int64_t i = 0; i < together; ++i) {
      BlockQueries<T>(op, task / tiles * together + i, first_of(task))
          .run({next / tiles * together, first_of(next), together, i});
    }
    end_of_streams();
  });
}

}  // namespace

void execute(const AttentionForward& op, const ExecContext& context) {
  const std::int64_t tiles = (op.shape.sequence + kTile - 1) / kTile;
  const ExecContext team = attention_team(context, op.cost().flops);
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if (op.mask.has_blocks()) return run_blocks<T>(op, team, tiles);
    parallel_tasks(team, op.shape.batch * op.shape.heads * tiles, [&](std::int64_t task) {
      const std::int64_t tile = tiles - 1 - task % tiles;  // long rows first
      QueryTile<T>(op, task / tiles, tile * kTile).run();
    });
  });
}

}  // namespace zl::cpu
