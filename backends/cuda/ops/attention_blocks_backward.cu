// Attention backward over a layout of blocks, as attention_backward.cu: one kernel whose blocks own
// keys writes dK and dV, one whose blocks own queries writes dQ, and no sum is shared.
#include "backends/cuda/ops/attention_blocks.h"
#include "backends/cuda/ops/attention_fma.h"
#include "backends/cuda/ops/attention_mma.h"

namespace zl::cuda {
namespace {

template <class Tiles, bool kKeys>
struct BlockBackwardArguments {
  Columns<typename Tiles::Source> dout, q, k;
  std::int64_t value_distance;
  Columns<typename Tiles::Target> dq, dk, dv;
  const typename Tiles::Arithmetic *lse, *delta;
  HeadLayout layout;
  TileOrder order;
  typename Tiles::Arithmetic scale;
  DropoutSpec dropout;
  BlockWords<kKeys> blocks;
};

// lse and delta of the tile's queries, which are its columns (kKeys) or its rows.
template <class Tiles, bool kKeys>
inline constexpr int kQueriesOfTile = kKeys ? Tiles::kTileColumns : Tiles::kTileRows;
template <class Tiles, bool kKeys>
inline constexpr int kFiguresOfGathered =
    2 * (kKeys ? Tiles::kStages : 1) * kQueriesOfTile<Tiles, kKeys>;

// Scores become probabilities (the dropped ones, for dV), dscores gradients of the scores (over
// scale). figures: [lse in units of log2][delta] of the tile's queries. kMasked: some scores do not
// count.
template <bool kMasked, bool kDropout, class Tiles, bool kKeys, class Scores>
__device__ __forceinline__ void differentiate_gathered(
    const Tiles& tiles, const BlockBackwardArguments<Tiles, kKeys>& a,
    const GatheredMask<Tiles, kKeys>& mask, const GatheredTile<Tiles>& tile, std::int64_t plane,
    const typename Tiles::Arithmetic* figures, Scores& scores, Scores& dscores) {
  using A = typename Tiles::Arithmetic;
  const A slope = a.scale * kLog2E<A>;
  const std::int64_t first_row = kDropout ? a.layout.global_plane(plane) * a.layout.sequence : 0;
  DropoutFactors<A> factors(a.dropout);
#pragma unroll
  for (int i = 0; i < Tiles::kRows * Scores::kOwn; ++i) {  // query by query
    const int r = kKeys ? i % Tiles::kRows : i / Scores::kOwn;
    const int c = kKeys ? i / Tiles::kRows : i % Scores::kOwn;
    if (kMasked && !mask.sees(tiles, tile, r, c)) {
      scores.at(r, c) = dscores.at(r, c) = A{0};
      continue;
    }
    const A* figure = figures + (kKeys ? tiles.column(c) : tiles.row(r));
    const A p = power_of_2(scores.at(r, c) * slope - figure[0]);
    A kept = A{1};
    if (kDropout && a.dropout.p > 0) {
      const int row = mask.row + tiles.row(r), other = tile.position(tiles, c);
      const int query = kKeys ? other : row, key = kKeys ? row : other;
      kept = factors.at((first_row + query) * a.layout.keys + key);
    }
    scores.at(r, c) = p * kept;
    dscores.at(r, c) = p * (dscores.at(r, c) * kept - figure[kQueriesOfTile<Tiles, kKeys>]);
  }
}

// As many as registers last.
template <class Tiles, bool kKeys, bool kDropout>
inline constexpr int kResidentBlocks = Tiles::kBlocksPerMultiprocessor +
                                       (!kKeys && !kDropout ? 1 : 0);

// kKeys: a block owns kTileRows keys of one kv head and runs over the queries of its group of
// heads, head by head; else it owns queries of one head and runs over the keys.
template <class Tiles, bool kKeys, bool kDropout>
__global__ void __launch_bounds__(Tiles::kThreads, (kResidentBlocks<Tiles, kKeys, kDropout>))
    attend_blocks_backward(BlockBackwardArguments<Tiles, kKeys> a) {
  using A = typename Tiles::Arithmetic;
  using Stored = typename Tiles::Stored;
  using Tile = GatheredTile<Tiles>;
  constexpr int kStages = Tiles::kStages, kQueries = kQueriesOfTile<Tiles, kKeys>;
  auto* x1 = dynamic_shared<Stored>();
  auto* x2 = x1 + Tiles::kRowTile;
  auto* y = x2 + Tiles::kRowTile;  // [kStages][2] tiles
  auto* figures = reinterpret_cast<A*>(y + 2 * kStages * Tiles::kColumnTile);
  auto* scratch = reinterpret_cast<std::byte*>(figures + kFiguresOfGathered<Tiles, kKeys>);
  const Tiles tiles(scratch);

  const HeadLayout& layout = a.layout;
  const TileOrder::Place place = a.order.locate(blockIdx.x);
  const int owners = kKeys ? layout.kv_heads : layout.heads;
  const std::int64_t batch = place.plane / owners;
  const int owner = static_cast<int>(place.plane % owners);
  const int kv_head = kKeys ? owner : owner / layout.group;
  const int head_first = kKeys ? owner * layout.group : owner;
  const int rank = kKeys ? place.rank : static_cast<int>(a.order.tiles) - 1 - place.rank;
  const int row_first = rank * Tiles::kTileRows, thread = static_cast<int>(threadIdx.x);
  const auto keys = layout.key(a.k, batch, kv_head);
  const auto values = layout.value_of_key(keys, a.value_distance);
  const GatheredMask<Tiles, kKeys> mask(a.blocks, row_first, a.blocks.limit(layout, batch));
  GatheredColumns<Tiles, kKeys> gathered(a.blocks, row_first, head_first,
                                         head_first + (kKeys ? layout.group : 1),
                                         scratch + Tiles::kScratchBytes);

  const auto fetch = [&](const Tile& tile, int head, int stage) {
    Stored* to = y + 2 * stage * Tiles::kColumnTile;
    tile.copy(tiles, to, kKeys ? layout.query(a.q, batch, head) : keys);
    tile.copy(tiles, to + Tiles::kColumnTile, kKeys ? layout.query(a.dout, batch, head) : values);
    tiles.commit();
  };
  // figures: [kStages][2][kQueries] of the streamed queries, or [2][kQueries] of the block's own.
  const auto figure_at = [&](const Tile& tile, int head, int i) {
    const int query = kKeys ? tile.position(i % kQueries) : row_first + i % kQueries;
    if (query >= layout.sequence) return A{0};
    const std::int64_t at = (batch * layout.heads + head) * layout.sequence + query;
    return i < kQueries ? a.lse[at] * kLog2E<A> : a.delta[at];
  };

  tiles.template copy<Tiles::kTileRows>(x1, kKeys ? keys : layout.query(a.q, batch, head_first),
                                        row_first);
  tiles.template copy<Tiles::kTileRows>(
      x2, kKeys ? values : layout.query(a.dout, batch, head_first), row_first);
  __syncthreads();
  if (!gathered.at_end()) fetch(gathered.tile(), gathered.head(), gathered.stage());
  for (int i = thread; i < 2 * kQueries && !gathered.at_end(); i += Tiles::kThreads) {
    figures[i] = figure_at(gathered.tile(), gathered.head(), i);
  }
  tiles.commit();
  tiles.wait();
  __syncthreads();

  const typename Tiles::RowOperand left1 = tiles.rows(x1), left2 = tiles.rows(x2);
  typename Tiles::template Values<Tiles::kWidth> sum1, sum2;  // sum2: kKeys only
  const auto work = [&](const Tile& tile, auto masked, const auto& meets) {
    const Stored* y1 = y + 2 * gathered.stage() * Tiles::kColumnTile;
    const Stored* y2 = y1 + Tiles::kColumnTile;
    typename Tiles::template Values<Tiles::kTileColumns> scores, dscores;
    tiles.multiply(left1, y1, layout.head_size, scores, meets);
    tiles.multiply(left2, y2, layout.head_size, dscores, meets);
    differentiate_gathered<decltype(masked)::value, kDropout>(
        tiles, a, mask, tile, batch * layout.heads + gathered.head(),
        figures + (kKeys ? gathered.stage() * 2 * kQueries : 0), scores, dscores);
    if constexpr (kKeys) tiles.accumulate(scores, y2, sum2, meets);
    tiles.accumulate(dscores, y1, sum1, meets);
  };
  static_assert(!kKeys || 2 * kQueries <= Tiles::kThreads);
  while (!gathered.at_end()) {
    const bool more = !gathered.at_last();
    if (kStages == 2 && more) fetch(gathered.next(), gathered.next_head(), gathered.next_stage());
    const int word = gathered.bring();
    const bool brings = kKeys && more && thread < 2 * kQueries;
    const A figure = brings ? figure_at(gathered.next(), gathered.next_head(), thread) : A{0};
    const Tile tile = gathered.tile();
    const Meeting meeting = mask.meeting(tiles, tile);
    if (meeting == Meeting::all) work(tile, std::false_type{}, EveryRow{});
    if (meeting == Meeting::some) {
      work(tile, std::true_type{},
           [&](int row, int column) { return mask.meets(tile, row, column); });
    }
    if (kStages == 1) {
      __syncthreads();
      if (more) fetch(gathered.next(), gathered.next_head(), 0);
    }
    if (brings) figures[gathered.next_stage() * 2 * kQueries + thread] = figure;
    gathered.step(word);
    tiles.wait();
    __syncthreads();
  }

  A factor[Tiles::kRows];
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) factor[r] = a.scale;
  tiles.store(sum1, factor, x1,
              kKeys ? layout.key(a.dk, batch, kv_head) : layout.query(a.dq, batch, head_first),
              row_first);
  if constexpr (kKeys) {
#pragma unroll
    for (int r = 0; r < Tiles::kRows; ++r) factor[r] = A{1};
    tiles.store(sum2, factor, x2, layout.key(a.dv, batch, kv_head), row_first);
  }
}

template <class Tiles, bool kKeys, bool kDropout>
void run_blocks_backward(const AttentionBackward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t tiles = blocks_for(shape.sequence, Tiles::kTileRows);
  const std::int64_t planes = shape.batch * (kKeys ? shape.kv_heads : shape.heads);
  const std::int64_t streams = kKeys ? shape.heads / shape.kv_heads : 1;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, tiles, 2 * streams * shape.sequence * shape.head_size * element);
  constexpr auto kShared = 2 * (Tiles::kRowTile + Tiles::kStages * Tiles::kColumnTile) *
                               std::int64_t{sizeof(typename Tiles::Stored)} +
                           kFiguresOfGathered<Tiles, kKeys> * std::int64_t{sizeof(A)} +
                           Tiles::kScratchBytes + GatheredColumns<Tiles, kKeys>::kSharedBytes;
  static_assert(kShared <= 99 * 1024);
  const BlockBackwardArguments<Tiles, kKeys> arguments{read_columns<Tiles>(all_columns(op.dout)),
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
                                                       BlockWords<kKeys>(op.mask, shape)};
  launch(context.stream, {planes * tiles, 1, Tiles::kThreads, kShared},
         attend_blocks_backward<Tiles, kKeys, kDropout>, arguments);
}

template <class Tiles, bool kDropout>
void run_both(const AttentionBackward& op, const ExecContext& context) {
  run_blocks_backward<Tiles, true, kDropout>(op, context);
  run_blocks_backward<Tiles, false, kDropout>(op, context);
}

template <class T, bool kDropout>
void run_fast(const AttentionBackward& op, const ExecContext& context) {
  if (op.shape.head_size <= 64) return run_both<MmaTiles<T, 64, 1, 64>, kDropout>(op, context);
  run_both<MmaTiles<T, 128, 1, 32>, kDropout>(op, context);
}

}  // namespace

void backward_of_blocks(const AttentionBackward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2) {
      const auto& [q, k, v] = op.qkv;
      const auto& [dq, dk, dv] = op.dqkv;
      if (fits_mma<T>(op.shape, all_columns(op.dout), q, k, v, dq, dk, dv)) {
        return op.dropout.p > 0 ? run_fast<T, true>(op, context) : run_fast<T, false>(op, context);
      }
    }
    with_fma_tiles(op.qkv.dtype(), op.shape.head_size, [&](auto tiles) {
      run_both<typename decltype(tiles)::type, true>(op, context);
    });
  });
}

}  // namespace zl::cuda
