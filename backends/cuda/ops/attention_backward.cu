// Attention backward: probabilities recomputed tile by tile (Dao et al. 2022, algorithm 4), bit by
// bit the same at every run: one kernel whose blocks own keys writes dK and dV, one whose blocks
// own queries writes dQ, and no sum is shared between blocks. The price is two products more (7
// instead of 5: S = Q K^T and dO V^T are computed in both); what it saves is the exchange of dQ
// among blocks. Both are one template: rows x1, x2 stay (K, V or Q, dO), columns y1, y2 stream
// past (Q, dO or K, V), so that S^T or S and their gradients are left operands as they lie in
// registers.
#include "backends/cuda/kernel/packed.h"
#include "backends/cuda/ops/attention_blocks.h"
#include "backends/cuda/ops/attention_fma.h"
#include "backends/cuda/ops/attention_mma.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/attention.h"
#include "core/ops/dropout_spec.h"

namespace zl::cuda {
namespace {

template <class Tiles, bool kKeys>
struct BackwardArguments {
  Columns<typename Tiles::Source> dout, q, k;
  std::int64_t value_distance;
  Columns<typename Tiles::Target> dq, dk, dv;
  const typename Tiles::Arithmetic *lse, *delta;
  HeadLayout layout;
  TileOrder order;
  typename Tiles::Arithmetic scale;
  DropoutSpec dropout;
  ScoreBand<kKeys> band;
};

// delta[b, h, i] = sum of dout * out over row i of head h; eight lanes to a row of a head.
template <class T, bool kPacked>
__global__ void __launch_bounds__(256) sum_products(const T* dout, const T* out, Math<T>* delta,
                                                    std::int64_t rows, HeadLayout layout) {
  constexpr int kLanes = 8, kStep = kPacked ? kPack<T> : 1;
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t part = thread / kLanes;  // row * heads + head
  const int lane = static_cast<int>(thread % kLanes);
  Math<T> sum = 0;
  if (part < rows * layout.heads) {
    for (int d = lane * kStep; d < layout.head_size; d += kLanes * kStep) {
      const std::int64_t at = part * layout.head_size + d;
      if constexpr (kPacked) {
        const Packed<T> left = load_packed(dout + at), right = load_packed_streaming(out + at);
#pragma unroll
        for (int i = 0; i < kStep; ++i) sum += load_value(left.at[i]) * load_value(right.at[i]);
      } else {
        sum += load_value(dout[at]) * load_value(out[at]);
      }
    }
  }
#pragma unroll
  for (int other = kLanes / 2; other > 0; other /= 2) sum += shuffle_xor(sum, other);
  if (part < rows * layout.heads && lane == 0) {
    const std::int64_t row = part / layout.heads, head = part % layout.heads;
    const std::int64_t batch = row / layout.sequence;
    delta[(batch * layout.heads + head) * layout.sequence + row % layout.sequence] = sum;
  }
}

// What a query needs to recompute its probabilities: -lse in units of log2, and delta. Queries past
// the end get probability 0.
template <class Tiles, bool kKeys>
__device__ __forceinline__ auto query_figure(const BackwardArguments<Tiles, kKeys>& a,
                                             std::int64_t plane, int query, bool want_delta) {
  using A = typename Tiles::Arithmetic;
  if (query >= a.layout.sequence) return want_delta ? A{0} : static_cast<A>(-INFINITY);
  const std::int64_t at = plane * a.layout.sequence + query;
  return want_delta ? a.delta[at] : -a.lse[at] * kLog2E<A>;
}

// Queries of a score tile.
template <class Tiles, bool kKeys>
inline constexpr int kFigures = kKeys ? Tiles::kTileColumns : Tiles::kTileRows;

// Of the block's shared memory.
template <class Tiles, bool kKeys>
inline constexpr int kFigureCount = 2 * (kKeys ? Tiles::kStages : 1) * kFigures<Tiles, kKeys>;

// Scores become probabilities (the dropped ones, for dV), dscores gradients of the scores (over
// scale). row_first and column_first: where the tile lies; end: of the block's columns. figures:
// query_figure of the tile's queries, first all without delta.
template <class Tiles, bool kKeys, bool kDropout, class Scores>
__device__ __forceinline__ void differentiate(const Tiles& tiles,
                                              const BackwardArguments<Tiles, kKeys>& a, int end,
                                              std::int64_t plane, int row_first, int column_first,
                                              const typename Tiles::Arithmetic* figures,
                                              Scores& scores, Scores& dscores) {
  using A = typename Tiles::Arithmetic;
  row_first = recomputed(row_first);
  a.band.apply(tiles, end, row_first, column_first, scores);
  const A slope = a.scale * kLog2E<A>;
  const std::int64_t dropout_plane = kDropout ? a.layout.global_plane(plane) : 0;
  DropoutFactors<A> factors(a.dropout);
#pragma unroll
  for (int i = 0; i < Tiles::kRows * Scores::kOwn; ++i) {  // query by query
    const int r = kKeys ? i % Tiles::kRows : i / Scores::kOwn;
    const int c = kKeys ? i / Tiles::kRows : i % Scores::kOwn;
    const int row = row_first + tiles.row(r), column = column_first + tiles.column(c);
    const int query = kKeys ? column : row, key = kKeys ? row : column;
    const A* figure = figures + (kKeys ? tiles.column(c) : tiles.row(r));
    const A p = power_of_2(scores.at(r, c) * slope + figure[0]);
    A kept = A{1};
    if (kDropout && a.dropout.p > 0) {
      kept = factors.at((dropout_plane * a.layout.sequence + query) * a.layout.keys + key);
    }
    scores.at(r, c) = p * kept;
    dscores.at(r, c) = p * (dscores.at(r, c) * kept - figure[kFigures<Tiles, kKeys>]);
  }
}

// Of keys past a sequence's length, from row `count` on.
template <class Tiles, class Sums>
__device__ __forceinline__ void clear_rows(const Tiles& tiles, int count, Sums& sums) {
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
    if (tiles.row(r) < count) continue;
#pragma unroll
    for (int c = 0; c < Sums::kOwn; ++c) sums.at(r, c) = 0;
  }
}

// What a block owns: rows [row_first, row_first + tile_rows) of a kv head or of a query head.
// head: that query head, or the first of the kv head's group.
template <bool kKeys>
struct Owner {
  std::int64_t batch;
  int kv_head, head, row_first;

  __device__ __forceinline__ Owner(const HeadLayout& layout, const TileOrder& order,
                                   std::int64_t block, int tile_rows) {
    const TileOrder::Place place = order.locate(block);
    const int owners = kKeys ? layout.kv_heads : layout.heads;
    const int owner = static_cast<int>(place.plane % owners);
    batch = place.plane / owners;
    kv_head = kKeys ? owner : owner / layout.group;
    head = kKeys ? owner * layout.group : owner;
    // The first keys meet the most queries, the last queries the most keys.
    row_first = (kKeys ? place.rank : static_cast<int>(order.tiles) - 1 - place.rank) * tile_rows;
  }
};

// One streamed tile: its head, first column and place in shared memory.
struct Step {
  int head, column, stage;

  // Column by column, then the next head.
  __device__ __forceinline__ Step next(int begin, int end, int columns, int stages) const {
    const bool last = column + columns >= end;
    return {head + last, last ? begin : column + columns, (stage + 1) % stages};
  }
};

// The end of a block: dK and dV, or dQ, leave by way of its own rows' tiles, which nobody reads any
// more. What it owns is found again, not kept through the loop.
template <class Tiles, bool kKeys, class Sums>
__device__ __forceinline__ void store_gradients(const Tiles& tiles,
                                                const BackwardArguments<Tiles, kKeys>& a,
                                                typename Tiles::Stored* x1,
                                                typename Tiles::Stored* x2, Sums& sum1,
                                                Sums& sum2) {
  using A = typename Tiles::Arithmetic;
  const Owner<kKeys> owner(a.layout, a.order, recomputed(static_cast<int>(blockIdx.x)),
                           Tiles::kTileRows);
  if (kKeys && a.band.lengths != nullptr) {
    const int limit = a.band.limit(a.layout, owner.batch) - owner.row_first;
    clear_rows(tiles, limit, sum1);
    clear_rows(tiles, limit, sum2);
  }
  A factor[Tiles::kRows];
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) factor[r] = a.scale;
  tiles.store(sum1, factor, x1,
              kKeys ? a.layout.key(a.dk, owner.batch, owner.kv_head)
                    : a.layout.query(a.dq, owner.batch, owner.head),
              owner.row_first);
  if constexpr (kKeys) {
#pragma unroll
    for (int r = 0; r < Tiles::kRows; ++r) factor[r] = A{1};
    tiles.store(sum2, factor, x2, a.layout.key(a.dv, owner.batch, owner.kv_head), owner.row_first);
  }
}

// kKeys: a block owns kTileRows keys of one kv head and runs over the queries of its group of
// heads, head by head; else it owns queries of one head and runs over the keys.
template <class Tiles, bool kKeys, bool kDropout>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocksPerMultiprocessor)
    attend_backward(BackwardArguments<Tiles, kKeys> a) {
  using Rows = HeadRows<typename Tiles::Source>;
  using A = typename Tiles::Arithmetic;
  using Stored = typename Tiles::Stored;
  constexpr int kColumns = Tiles::kTileColumns, kStages = Tiles::kStages;
  auto* x1 = dynamic_shared<Stored>();
  auto* x2 = x1 + Tiles::kRowTile;
  auto* y = x2 + Tiles::kRowTile;  // [kStages][2] tiles
  auto* figures = reinterpret_cast<A*>(y + 2 * kStages * Tiles::kColumnTile);
  const Tiles tiles(reinterpret_cast<std::byte*>(figures + kFigureCount<Tiles, kKeys>));

  const HeadLayout& layout = a.layout;
  const Owner<kKeys> owner(layout, a.order, blockIdx.x, Tiles::kTileRows);
  const std::int64_t batch = owner.batch;
  const int row_first = owner.row_first;
  const int begin = a.band.begin(row_first, kColumns);
  const int end = a.band.end(layout, batch, row_first, Tiles::kTileRows);
  const Rows keys = layout.key(a.k, batch, owner.kv_head);
  const Rows values = layout.value_of_key(keys, a.value_distance);
  const int thread = static_cast<int>(threadIdx.x);

  Step step{owner.head, begin, 0};
  const int head_end = step.head + (begin >= end ? 0 : kKeys ? layout.group : 1);
  const auto fetch = [&](const Step& at) {
    if (at.head >= head_end) return tiles.commit();
    Stored* to = y + at.stage * 2 * Tiles::kColumnTile;
    const Rows first = kKeys ? layout.query(a.q, batch, at.head) : keys;
    const Rows second = kKeys ? layout.query(a.dout, batch, at.head) : values;
    tiles.template copy<kColumns>(to, first, at.column);
    tiles.template copy<kColumns>(to + Tiles::kColumnTile, second, at.column);
    tiles.commit();
  };
  // figures: [kStages][2][kQueries] of the streamed queries, or [2][kQueries] of the block's own.
  constexpr int kQueries = kFigures<Tiles, kKeys>;
  const auto figure_at = [&](const Step& at, int i) {
    if (at.head >= head_end) return A{0};
    return query_figure(a, batch * layout.heads + at.head,
                        (kKeys ? at.column : row_first) + i % kQueries, i >= kQueries);
  };

  const Rows rows1 = kKeys ? keys : layout.query(a.q, batch, owner.head);
  const Rows rows2 = kKeys ? values : layout.query(a.dout, batch, owner.head);
  tiles.template copy<Tiles::kTileRows>(x1, rows1, row_first);
  tiles.template copy<Tiles::kTileRows>(x2, rows2, row_first);
  fetch(step);
  for (int i = thread; i < 2 * kQueries; i += Tiles::kThreads) figures[i] = figure_at(step, i);
  tiles.wait();
  __syncthreads();

  const typename Tiles::RowOperand left1 = tiles.rows(x1), left2 = tiles.rows(x2);
  typename Tiles::template Values<Tiles::kWidth> sum1, sum2;  // sum2: kKeys only
  while (step.head < head_end) {
    const Stored* y1 = y + step.stage * 2 * Tiles::kColumnTile;
    const Step next = step.next(begin, end, kColumns, kStages);
    if constexpr (kStages == 2) fetch(next);
    static_assert(!kKeys || 2 * kQueries <= Tiles::kThreads);
    const bool brings = kKeys && thread < 2 * kQueries;
    const A next_figure = brings ? figure_at(next, thread) : A{0};
    const int first = recomputed(row_first);
    if (a.band.meets(tiles, first, step.column)) {
      typename Tiles::template Values<kColumns> scores, dscores;
      tiles.multiply(left1, y1, layout.head_size, scores);
      tiles.multiply(left2, y1 + Tiles::kColumnTile, layout.head_size, dscores);
      differentiate<Tiles, kKeys, kDropout>(
          tiles, a, end, batch * layout.heads + step.head, row_first, step.column,
          figures + (kKeys ? step.stage * 2 * kQueries : 0), scores, dscores);
      if constexpr (kKeys) tiles.accumulate(scores, y1 + Tiles::kColumnTile, sum2);
      tiles.accumulate(dscores, y1, sum1);
    }
    if constexpr (kStages == 1) {
      __syncthreads();
      fetch(next);
    }
    if (brings) figures[next.stage * 2 * kQueries + thread] = next_figure;
    step = next;
    tiles.wait();
    __syncthreads();
  }

  store_gradients<Tiles, kKeys>(tiles, a, x1, x2, sum1, sum2);
}

template <class T>
void compute_delta(const AttentionBackward& op, const ExecContext& context) {
  const bool packed = op.shape.head_size % kPack<T> == 0 && aligned_16(op.dout.data, op.out.data);
  const std::int64_t rows = op.shape.batch * op.shape.sequence;
  launch(context.stream, {blocks_for(rows * op.shape.heads * 8, 256), 1, 256, 0},
         packed ? sum_products<T, true> : sum_products<T, false>, op.dout.as<T>(), op.out.as<T>(),
         op.delta.as<Math<T>>(), rows, HeadLayout(op.shape));
}

template <class Tiles, bool kKeys, bool kDropout>
void run(const AttentionBackward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t rows = kKeys ? shape.key_count() : shape.sequence;
  const std::int64_t columns = kKeys ? shape.sequence : shape.key_count();
  const std::int64_t tiles = blocks_for(rows, Tiles::kTileRows);
  const std::int64_t planes = shape.batch * (kKeys ? shape.kv_heads : shape.heads);
  const std::int64_t streams = kKeys ? shape.heads / shape.kv_heads : 1;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, tiles, 2 * streams * columns * shape.head_size * element);
  constexpr auto kShared =
      (2 * Tiles::kRowTile + 2 * Tiles::kStages * Tiles::kColumnTile) *
          std::int64_t{sizeof(typename Tiles::Stored)} +
      kFigureCount<Tiles, kKeys> * std::int64_t{sizeof(typename Tiles::Arithmetic)} +
      Tiles::kScratchBytes;
  static_assert(kShared <= 99 * 1024);
  const BackwardArguments<Tiles, kKeys> arguments{read_columns<Tiles>(all_columns(op.dout)),
                                                  read_columns<Tiles>(op.qkv.q),
                                                  read_columns<Tiles>(op.qkv.k),
                                                  value_distance(op.qkv),
                                                  written_columns<Tiles>(op.dqkv.q),
                                                  written_columns<Tiles>(op.dqkv.k),
                                                  written_columns<Tiles>(op.dqkv.v),
                                                  op.lse.as<A>(),
                                                  op.delta.as<A>(),
                                                  HeadLayout(shape),
                                                  order,
                                                  static_cast<A>(op.scale),
                                                  op.dropout,
                                                  ScoreBand<kKeys>(op.mask, shape)};
  launch(context.stream, {planes * tiles, 1, Tiles::kThreads, kShared},
         attend_backward<Tiles, kKeys, kDropout>, arguments);
}

template <class T, int kWidth, bool kDropout>
void run_fast(const AttentionBackward& op, const ExecContext& context) {
  // Rows and columns as registers last; dropout's random words take some.
  if constexpr (kWidth == 64) {
    run<MmaTiles<T, 64, kDropout ? 1 : 2, kDropout ? 64 : 32>, true, kDropout>(op, context);
    run<MmaTiles<T, 64, 2, kDropout ? 32 : 64>, false, kDropout>(op, context);
  } else {
    run<MmaTiles<T, 128, 1, kDropout ? 32 : 48>, true, kDropout>(op, context);
    run<MmaTiles<T, 128, 2, 32>, false, kDropout>(op, context);
  }
}

template <class T>
void run_fast(const AttentionBackward& op, const ExecContext& context) {
  const bool narrow = op.shape.head_size <= 64, drops = op.dropout.p > 0;
  if (narrow)
    return drops ? run_fast<T, 64, true>(op, context) : run_fast<T, 64, false>(op, context);
  drops ? run_fast<T, 128, true>(op, context) : run_fast<T, 128, false>(op, context);
}

}  // namespace

void execute(const AttentionBackward& op, const ExecContext& context) {
  check_attention(op.shape, op.qkv, op.scale, op.kName);
  if (op.out.count() == 0) return;
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    compute_delta<T>(op, context);
    if (op.mask.has_blocks()) return backward_of_blocks(op, context);
    if constexpr (sizeof(T) == 2) {
      const auto& [q, k, v] = op.qkv;
      const auto& [dq, dk, dv] = op.dqkv;
      if (fits_mma<T>(op.shape, all_columns(op.dout), q, k, v, dq, dk, dv)) {
        return run_fast<T>(op, context);
      }
    }
    with_fma_tiles(op.qkv.dtype(), op.shape.head_size, [&](auto tiles) {
      run<typename decltype(tiles)::type, true, true>(op, context);
      run<typename decltype(tiles)::type, false, true>(op, context);
    });
  });
}

}  // namespace zl::cuda
