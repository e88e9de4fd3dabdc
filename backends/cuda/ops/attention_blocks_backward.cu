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

// Scores become probabilities (the dropped ones, for dV), dscores gradients of the scores (over
// scale). figures: [lse in units of log2][delta] of the tile's queries.
template <class Tiles, bool kKeys, class Scores>
__device__ __forceinline__ void differentiate_gathered(
    const Tiles& tiles, const BlockBackwardArguments<Tiles, kKeys>& a,
    const GatheredColumns<Tiles, kKeys>& columns, std::int64_t plane, int row_first,
    const typename Tiles::Arithmetic* figures, Scores& scores, Scores& dscores) {
  using A = typename Tiles::Arithmetic;
  const A slope = a.scale * kLog2E<A>;
  const std::int64_t first_row = a.layout.global_plane(plane) * a.layout.sequence;
  DropoutFactors<A> factors(a.dropout);
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Scores::kOwn; ++c) {
      const int row = row_first + tiles.row(r), column = tiles.column(c);
      if (!columns.sees(row, column)) {
        scores.at(r, c) = dscores.at(r, c) = A{0};
        continue;
      }
      const int other = columns.position(column);
      const int query = kKeys ? other : row, key = kKeys ? row : other;
      const A* figure = figures + (kKeys ? column : tiles.row(r));
      const A p = power_of_2(scores.at(r, c) * slope - figure[0]);
      A kept = A{1};
      if (a.dropout.p > 0) kept = factors.at((first_row + query) * a.layout.keys + key);
      scores.at(r, c) = p * kept;
      dscores.at(r, c) = p * (dscores.at(r, c) * kept - figure[kQueriesOfTile<Tiles, kKeys>]);
    }
  }
}

// kKeys: a block owns kTileRows keys of one kv head and runs over the queries of its group of
// heads, head by head; else it owns queries of one head and runs over the keys.
template <class Tiles, bool kKeys>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocksPerMultiprocessor)
    attend_blocks_backward(BlockBackwardArguments<Tiles, kKeys> a) {
  using A = typename Tiles::Arithmetic;
  using Gathered = GatheredColumns<Tiles, kKeys>;
  constexpr int kQueries = kQueriesOfTile<Tiles, kKeys>;
  auto* x1 = dynamic_shared<typename Tiles::Stored>();
  auto* x2 = x1 + Tiles::kRowTile;
  auto* y1 = x2 + Tiles::kRowTile;
  auto* y2 = y1 + Tiles::kColumnTile;
  auto* figures = reinterpret_cast<A*>(y2 + Tiles::kColumnTile);
  auto* scratch = reinterpret_cast<std::byte*>(figures + 2 * kQueries);
  const Tiles tiles(scratch);

  const HeadLayout& layout = a.layout;
  const TileOrder::Place place = a.order.locate(blockIdx.x);
  const int owners = kKeys ? layout.kv_heads : layout.heads;
  const std::int64_t batch = place.plane / owners;
  const int owner = static_cast<int>(place.plane % owners);
  const int kv_head = kKeys ? owner : owner / layout.group;
  const int head_first = kKeys ? owner * layout.group : owner;
  const int head_end = head_first + (kKeys ? layout.group : 1);
  const int rank = kKeys ? place.rank : static_cast<int>(a.order.tiles) - 1 - place.rank;
  const int row_first = rank * Tiles::kTileRows;
  const auto keys = layout.key(a.k, batch, kv_head);
  const auto values = layout.value_of_key(keys, a.value_distance);
  const int limit = a.blocks.limit(layout, batch);
  const auto fill_figures = [&](int head, const auto& query_of) {
    const std::int64_t line = (batch * layout.heads + head) * layout.sequence;
    for (int i = static_cast<int>(threadIdx.x); i < kQueries; i += Tiles::kThreads) {
      const int query = query_of(i);
      const bool inside = query < layout.sequence;
      figures[i] = inside ? a.lse[line + query] * kLog2E<A> : A{0};
      figures[kQueries + i] = inside ? a.delta[line + query] : A{0};
    }
  };

  tiles.template copy<Tiles::kTileRows>(x1, kKeys ? keys : layout.query(a.q, batch, head_first),
                                        row_first);
  tiles.template copy<Tiles::kTileRows>(
      x2, kKeys ? values : layout.query(a.dout, batch, head_first), row_first);
  if (!kKeys) fill_figures(head_first, [&](int i) { return row_first + i; });
  tiles.commit();
  tiles.wait();
  __syncthreads();

  const typename Tiles::RowOperand left1 = tiles.rows(x1), left2 = tiles.rows(x2);
  typename Tiles::template Values<Tiles::kWidth> sum1, sum2;  // sum2: kKeys only
  for (int head = head_first; head < head_end; ++head) {
    const auto rows1 = kKeys ? layout.query(a.q, batch, head) : keys;
    const auto rows2 = kKeys ? layout.query(a.dout, batch, head) : values;
    const Gathered columns(a.blocks, head, row_first, kKeys ? layout.sequence : layout.keys, limit,
                           scratch + Tiles::kScratchBytes);
    for (int piece = 0; piece < columns.pieces(); piece += Gathered::kSlots) {
      columns.fill(piece);
      if (kKeys) {
        fill_figures(head, [&](int i) {
          return columns.first(piece + i / Gathered::kPiece) + i % Gathered::kPiece;
        });
      }
      columns.copy(tiles, y1, rows1, piece);
      columns.copy(tiles, y2, rows2, piece);
      tiles.commit();
      tiles.wait();
      __syncthreads();
      typename Tiles::template Values<Tiles::kTileColumns> scores, dscores;
      tiles.multiply(left1, y1, layout.head_size, scores);
      tiles.multiply(left2, y2, layout.head_size, dscores);
      differentiate_gathered(tiles, a, columns, batch * layout.heads + head, row_first, figures,
                             scores, dscores);
      const auto meets = [&](int row, int column) {
        return columns.meets(row_first + row, column);
      };
      if constexpr (kKeys) tiles.accumulate(scores, y2, sum2, meets);
      tiles.accumulate(dscores, y1, sum1, meets);
      __syncthreads();
    }
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

template <class Tiles, bool kKeys>
void run_blocks_backward(const AttentionBackward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t tiles = blocks_for(shape.sequence, Tiles::kTileRows);
  const std::int64_t planes = shape.batch * (kKeys ? shape.kv_heads : shape.heads);
  const std::int64_t streams = kKeys ? shape.heads / shape.kv_heads : 1;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, tiles, 2 * streams * shape.sequence * shape.head_size * element);
  constexpr auto kShared =
      2 * (Tiles::kRowTile + Tiles::kColumnTile) * std::int64_t{sizeof(typename Tiles::Stored)} +
      2 * kQueriesOfTile<Tiles, kKeys> * std::int64_t{sizeof(A)} + Tiles::kScratchBytes +
      GatheredColumns<Tiles, kKeys>::kSharedBytes;
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
         attend_blocks_backward<Tiles, kKeys>, arguments);
}

template <class Tiles>
void run_both(const AttentionBackward& op, const ExecContext& context) {
  run_blocks_backward<Tiles, true>(op, context);
  run_blocks_backward<Tiles, false>(op, context);
}

}  // namespace

void backward_of_blocks(const AttentionBackward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2) {
      const auto& [q, k, v] = op.qkv;
      const auto& [dq, dk, dv] = op.dqkv;
      if (fits_mma<T>(op.shape, all_columns(op.dout), q, k, v, dq, dk, dv)) {
        return op.shape.head_size <= 64 ? run_both<MmaTiles<T, 64, 1, 64>>(op, context)
                                        : run_both<MmaTiles<T, 128, 1, 32>>(op, context);
      }
    }
    with_fma_tiles(op.qkv.dtype(), op.shape.head_size,
                   [&](auto tiles) { run_both<typename decltype(tiles)::type>(op, context); });
  });
}

}  // namespace zl::cuda
