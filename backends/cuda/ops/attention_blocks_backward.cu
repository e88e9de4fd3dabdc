// Attention backward over a layout of blocks, as attention_backward.cu: one kernel whose blocks own
// keys writes dK and dV, one whose blocks own queries writes dQ. Only the sums of a tile that was
// cut are shared: each part's lies in the workspace, and a last kernel adds them in the parts'
// order.
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
  typename Tiles::Arithmetic*
      sums;  // of parts [plane][part][sum][row][head_size]; null: no tile is cut
};

inline constexpr int kSumThreads = 256;
// Sums of rows: of dK and of dV, or of dQ.
template <bool kKeys>
inline constexpr int kSums = kKeys ? 2 : 1;

template <class Tiles, bool kKeys>
__device__ __forceinline__ typename Tiles::Arithmetic* sum_of_part(
    const BlockBackwardArguments<Tiles, kKeys>& a, std::int64_t plane, int part, int sum) {
  const std::int64_t at = (plane * a.blocks.parts + part) * kSums<kKeys> + sum;
  return a.sums + at * BlockTable::kTile * a.layout.head_size;
}

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
  const int row_tiles = (layout.sequence + Tiles::kTileRows - 1) / Tiles::kTileRows;
  const BlockShare<Tiles, kKeys> share(a.blocks, head_first, place.rank, row_tiles,
                                       a.sums != nullptr);
  if (share.is_empty()) return;
  const int row_first = share.row, thread = static_cast<int>(threadIdx.x);
  const auto keys = layout.key(a.k, batch, kv_head);
  const auto values = layout.value_of_key(keys, a.value_distance);
  const GatheredMask<Tiles, kKeys> mask(a.blocks, row_first, a.blocks.limit(layout, batch));
  GatheredColumns<Tiles, kKeys> gathered(a.blocks, row_first, head_first,
                                         head_first + (kKeys ? layout.group : 1),
                                         scratch + Tiles::kScratchBytes, share.span);

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

  if (share.part >= 0) {
    const int line = row_first % static_cast<int>(BlockTable::kTile);
    const auto keep = [&](int sum, auto& own) {
      A* to = sum_of_part(a, place.plane, share.part, sum) + line * layout.head_size;
#pragma unroll
      for (int i = 0; i < Tiles::kRows * own.kOwn; ++i) {
        const int r = i / own.kOwn, c = i % own.kOwn;
        if (tiles.column(c) >= layout.head_size) continue;
        to[tiles.row(r) * layout.head_size + tiles.column(c)] = own.at(r, c);
      }
    };
    keep(0, sum1);
    if constexpr (kKeys) keep(1, sum2);
    return;
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

__device__ __forceinline__ void store_sum(const AnyFloats& to, int i, float x) { to.store(i, x); }
template <class T, class A>
__device__ __forceinline__ void store_sum(T* to, int i, A x) {
  to[i] = store_value<T>(x);
}

// One block: a part's share of the rows of the tile that it is of.
template <class Tiles, bool kKeys>
__global__ void __launch_bounds__(kSumThreads) add_parts(BlockBackwardArguments<Tiles, kKeys> a) {
  using A = typename Tiles::Arithmetic;
  const HeadLayout& layout = a.layout;
  const int owners = kKeys ? layout.kv_heads : layout.heads, parts = a.blocks.parts;
  const std::int64_t plane = blockIdx.x / parts;
  const int own = static_cast<int>(blockIdx.x % parts), head = static_cast<int>(plane % owners);
  const auto tile_of = [&](int part) {
    return a.blocks.part(kKeys ? head * layout.group : head, part)[0];
  };
  const int tile = tile_of(own);
  if (tile < 0) return;
  int first = own, end = own + 1;
  while (first > 0 && tile_of(first - 1) == tile) --first;
  while (end < parts && tile_of(end) == tile) ++end;
  const auto add = [&](int sum, A scale, const auto& to) {
    const int row_first = tile * static_cast<int>(BlockTable::kTile);
    const int elements = min(static_cast<int>(BlockTable::kTile), to.count - row_first) * to.width;
    const int step = (end - first) * kSumThreads;
    for (int i = (own - first) * kSumThreads + static_cast<int>(threadIdx.x); i < elements;
         i += step) {
      A total = 0;
      for (int part = first; part < end; ++part) total += sum_of_part(a, plane, part, sum)[i];
      store_sum(to.at(row_first + i / to.width), i % to.width, scale * total);
    }
  };
  const std::int64_t batch = plane / owners;
  if constexpr (kKeys) {
    add(0, a.scale, layout.key(a.dk, batch, head));
    add(1, A{1}, layout.key(a.dv, batch, head));
  } else {
    add(0, a.scale, layout.query(a.dq, batch, head));
  }
}

// Room for the sums of parts; null: none is cut, or not for this op: a part is of one layout, which
// the heads of a kv head need not share, and the sums may not fit.
template <class Tiles, bool kKeys>
typename Tiles::Arithmetic* room_for_sums(const AttentionBackward& op, const ExecContext& context,
                                          std::int64_t planes) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t parts = kKeys ? op.mask.parts.keys : op.mask.parts.queries;
  const bool shares_layout = !kKeys || op.mask.layouts == 1 || shape.heads == shape.kv_heads;
  const std::int64_t bytes = planes * parts * kSums<kKeys> * BlockTable::kTile * shape.head_size *
                             static_cast<std::int64_t>(sizeof(A));
  const bool fits = bytes <= context.workspace_bytes;
  return parts > 0 && shares_layout && fits ? reinterpret_cast<A*>(context.workspace) : nullptr;
}

template <class Tiles, bool kKeys, bool kDropout>
void run_blocks_backward(const AttentionBackward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t planes = shape.batch * (kKeys ? shape.kv_heads : shape.heads);
  A* sums = room_for_sums<Tiles, kKeys>(op, context, planes);
  const BlockWords<kKeys> blocks(op.mask, shape);
  const std::int64_t tiles = blocks_for(shape.sequence, Tiles::kTileRows);
  const std::int64_t shares =
      tiles + (sums == nullptr ? 0 : blocks.parts * BlockShare<Tiles, kKeys>::kOwners);
  const std::int64_t streams = kKeys ? shape.heads / shape.kv_heads : 1;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, shares, 2 * streams * shape.sequence * shape.head_size * element);
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
                                                       blocks,
                                                       sums};
  launch(context.stream, {planes * shares, 1, Tiles::kThreads, kShared},
         attend_blocks_backward<Tiles, kKeys, kDropout>, arguments);
  if (sums == nullptr) return;
  launch(context.stream, {planes * blocks.parts, 1, kSumThreads, 0}, add_parts<Tiles, kKeys>,
         arguments);
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
