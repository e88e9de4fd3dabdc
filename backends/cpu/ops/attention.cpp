// Attention forward: online softmax over tiles of keys (Dao et al. 2022, algorithm 1).
#include <cmath>
#include <limits>
#include <utility>

#include "backends/cpu/ops/attention_blocks.h"
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
    if (op_.mask.has_blocks()) {
      each_group(op_.mask, op_.shape, head_, first_, [&](const BlockGroup& group) { add(group); });
      return finish();
    }
    const TileKeys seen(band_, position_, queries_);
    for (std::int64_t key = seen.begin; key < seen.end; key += kTile) {
      add_keys(key, std::min(kTile, seen.end - key));
    }
    finish();
  }

 private:
  void load_queries(A* tile) {
    std::fill(tile, tile + kTile * padded_, A{0});
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
    update_softmax([&](auto&& part) { part(0, keys, 0, lanes_); });
    if (op_.dropout.p > 0) drop(key, keys, scores_);
    // Rows of `lanes_` past `queries_` are computed and never stored.
    multiply_block<A>({scores_, 1, lanes_}, round_up(queries_, kTileRows), values_, keys, padded_,
                      out_, true, mask.diagonal ? Part::depth_to_row : Part::all);
  }

  // The keys of a group's granules, one after the other. What no query asks for is never written.
  void add(const BlockGroup& group) {
    const std::int64_t query_granules = round_up(queries_, kGranule) / kGranule;
    // Calls part(first row, end, first lane, end) for the scores that count.
    const auto each_part = [&](auto&& part) {
      for (std::int64_t i = 0; i < group.count; ++i) {
        const auto sees = [&](std::int64_t r) { return group.sees(i, r); };
        each_run(query_granules, sees, [&](std::int64_t begin, std::int64_t end) {
          part(i * kGranule, (i + 1) * kGranule, begin * kGranule, end * kGranule);
        });
      }
    };
    for (std::int64_t i = 0; i < group.count; ++i) load_granule(group, i);
    each_part([&](std::int64_t row, std::int64_t, std::int64_t begin, std::int64_t end) {
      multiply_part<A>({keys_ + row * padded_, padded_, 1}, kGranule, queries_t_ + begin, lanes_,
                       width_, end - begin, scores_ + row * lanes_ + begin, lanes_, false);
    });
    for (std::int64_t i = 0; i < group.count; ++i) {
      A* scores = scores_ + i * kGranule * lanes_;
      const TileMask mask(band_, position_, queries_, group.key(i), kGranule);
      if (!mask.whole) apply(mask, kGranule, scores);
      hide_padding(group.key(i), scores);
    }
    update_softmax(each_part);
    for (std::int64_t i = 0; i < group.count && op_.dropout.p > 0; ++i) {
      drop(group.key(i), kGranule, scores_ + i * kGranule * lanes_);
    }
    for (std::int64_t r = 0; r < query_granules; ++r) {
      const auto sees = [&](std::int64_t i) { return group.sees(i, r); };
      each_run(group.count, sees, [&](std::int64_t begin, std::int64_t end) {
        multiply_part<A>({scores_ + begin * kGranule * lanes_ + r * kGranule, 1, lanes_}, kGranule,
                         values_ + begin * kGranule * padded_, padded_, (end - begin) * kGranule,
                         padded_, out_ + r * kGranule * padded_, padded_, true);
      });
    }
  }

  void load_granule(const BlockGroup& group, std::int64_t i) {
    const std::int64_t row = batch_ * op_.shape.key_count() + group.key(i);
    const std::int64_t at = i * kGranule * padded_;
    load_rows<T>(head_columns(op_.qkv.k, kv_head_, width_), row, kGranule, width_, padded_, A{1},
                 keys_ + at);
    load_rows<T>(head_columns(op_.qkv.v, kv_head_, width_), row, kGranule, width_, padded_, A{1},
                 values_ + at);
  }

  // Keys of a granule past the sequence's length.
  void hide_padding(std::int64_t key, A* scores) {
    const std::int64_t seen = std::clamp<std::int64_t>(band_.limit - key, 0, kGranule);
    std::fill(scores + seen * lanes_, scores + kGranule * lanes_, kUnseen);
  }

  void apply(const TileMask& mask, std::int64_t keys, A* scores) {
    for (std::int64_t k = 0; k < keys; ++k) {
      A* score = scores + k * lanes_;
      std::fill(score, score + mask.first(k, lanes_), kUnseen);
      std::fill(score + mask.last(k, lanes_), score + lanes_, kUnseen);
    }
  }

  // Scores become probabilities against the new maxima; earlier sums are rescaled. each_part calls
  // its argument with (first row, end, first lane, end) for the parts of the scores that count.
  template <class EachPart>
  void update_softmax(const EachPart& each_part) {
    A peak[kTile], sum[kTile] = {}, keep[kTile];
    std::copy_n(maximum_, kTile, peak);
    each_part([&](std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = first; k < last; ++k) {
        const A* __restrict score = scores_ + k * lanes_;
        for (std::int64_t q = begin; q < end; ++q) {
          peak[q] = score[q] > peak[q] ? score[q] : peak[q];
        }
      }
    });
    for (A& each : peak) each = std::max(each, std::numeric_limits<A>::lowest());  // nothing seen
    each_part([&](std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = first; k < last; ++k) {
        A* __restrict score = scores_ + k * lanes_;
        for (std::int64_t q = begin; q < end; ++q) {
          score[q] = fast_exp(score[q] - peak[q]);
          sum[q] += score[q];
        }
      }
    });
    for (std::int64_t q = 0; q < lanes_; ++q) {
      keep[q] = fast_exp(maximum_[q] - peak[q]);
      sum_[q] = sum_[q] * keep[q] + sum[q];
      maximum_[q] = peak[q];
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

}  // namespace

void execute(const AttentionForward& op, const ExecContext& context) {
  const std::int64_t tiles = (op.shape.sequence + kTile - 1) / kTile;
  const std::int64_t planes = op.shape.batch * op.shape.heads;
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    parallel_tasks(context, planes * tiles, [&](std::int64_t task) {
      // One head after the other, while its keys are in the cache; long rows first.
      const std::int64_t tile = tiles - 1 - task % tiles;
      QueryTile<decltype(type)>(op, task / tiles, tile * kTile).run();
    });
  });
}

}  // namespace zl::cpu
