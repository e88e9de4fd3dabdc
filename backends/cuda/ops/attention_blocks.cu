// Attention forward over a layout of blocks: the online softmax over the keys of the blocks that
// exist.
#include "backends/cuda/ops/attention_blocks.h"

#include "backends/cuda/ops/attention_fma.h"
#include "backends/cuda/ops/attention_mma.h"
#include "backends/cuda/ops/attention_softmax.h"

namespace zl::cuda {
namespace {

template <class Tiles>
struct BlockForwardArguments {
  Columns<typename Tiles::Source> q, k;
  std::int64_t value_distance;
  Columns<typename Tiles::Target> out;
  typename Tiles::Arithmetic* lse;
  HeadLayout layout;
  TileOrder order;
  typename Tiles::Arithmetic scale;
  DropoutSpec dropout;
  BlockWords<false> blocks;
};

// Scores that do not count become minus infinity.
template <class Tiles, class Scores>
__device__ __forceinline__ void hide_unseen(const Tiles& tiles,
                                            const GatheredColumns<Tiles, false>& columns, int row,
                                            Scores& scores) {
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Scores::kOwn; ++c) {
      if (!columns.sees(row + tiles.row(r), tiles.column(c))) {
        scores.at(r, c) = static_cast<typename Tiles::Arithmetic>(-INFINITY);
      }
    }
  }
}

template <class Tiles, class Scores>
__device__ __forceinline__ void drop_gathered(const Tiles& tiles, const DropoutSpec& spec,
                                              const GatheredColumns<Tiles, false>& columns,
                                              std::int64_t first_row, int keys, Scores& scores) {
  DropoutFactors<typename Tiles::Arithmetic> factors(spec);
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
    const std::int64_t line = (first_row + tiles.row(r)) * keys;
#pragma unroll
    for (int c = 0; c < Scores::kOwn; ++c) {
      scores.at(r, c) *= factors.at(line + columns.position(tiles.column(c)));
    }
  }
}

// One block: kTileRows queries of one head.
template <class Tiles>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocksPerMultiprocessor)
    attend_blocks(BlockForwardArguments<Tiles> a) {
  using A = typename Tiles::Arithmetic;
  using Gathered = GatheredColumns<Tiles, false>;
  auto* queries = dynamic_shared<typename Tiles::Stored>();
  auto* keys = queries + Tiles::kRowTile;
  auto* values = keys + Tiles::kColumnTile;
  auto* scratch = reinterpret_cast<std::byte*>(values + Tiles::kColumnTile);
  const Tiles tiles(scratch);
  const TileOrder::Place place = a.order.locate(blockIdx.x);
  const std::int64_t plane = place.plane, batch = plane / a.layout.heads;
  const int head = static_cast<int>(plane % a.layout.heads);
  const int query = (static_cast<int>(a.order.tiles) - 1 - place.rank) * Tiles::kTileRows;
  const auto key_rows = a.layout.key(a.k, batch, head / a.layout.group);
  const auto value_rows = a.layout.value_of_key(key_rows, a.value_distance);
  const Gathered columns(a.blocks, head, query, a.layout.keys, a.blocks.limit(a.layout, batch),
                         scratch + Tiles::kScratchBytes);

  tiles.template copy<Tiles::kTileRows>(queries, a.layout.query(a.q, batch, head), query);
  tiles.commit();
  tiles.wait();
  __syncthreads();
  const typename Tiles::RowOperand left = tiles.rows(queries);
  RunningSoftmax<Tiles> softmax;
  typename Tiles::template Values<Tiles::kWidth> sums;
  for (int piece = 0; piece < columns.pieces(); piece += Gathered::kSlots) {
    columns.fill(piece);
    columns.copy(tiles, keys, key_rows, piece);
    columns.copy(tiles, values, value_rows, piece);
    tiles.commit();
    tiles.wait();
    __syncthreads();
    typename Tiles::template Values<Tiles::kTileColumns> scores;
    tiles.multiply(left, keys, a.layout.head_size, scores);
    hide_unseen(tiles, columns, query, scores);
    softmax.update(a.scale * kLog2E<A>, scores, sums);
    if (a.dropout.p > 0) {
      drop_gathered(tiles, a.dropout, columns,
                    a.layout.global_plane(plane) * a.layout.sequence + query, a.layout.keys,
                    scores);
    }
    tiles.accumulate(scores, values, sums,
                     [&](int row, int column) { return columns.meets(query + row, column); });
    __syncthreads();
  }

  A factor[Tiles::kRows];
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
    const A total = softmax.total(r);
    const int row = query + tiles.row(r);
    factor[r] = total > 0 ? A{1} / total : A{0};
    if (row < a.layout.sequence && static_cast<int>(threadIdx.x) % Tiles::kRowLanes == 0) {
      a.lse[plane * a.layout.sequence + row] = softmax.peak[r] * a.scale + ::log(total);
    }
  }
  tiles.store(sums, factor, queries, a.layout.query(a.out, batch, head), query);
}

template <class Tiles>
void run_blocks(const AttentionForward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t tiles = blocks_for(shape.sequence, Tiles::kTileRows);
  const std::int64_t planes = shape.batch * shape.heads;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, tiles, 2 * shape.key_count() * shape.head_size * element);
  constexpr auto kShared =
      (Tiles::kRowTile + 2 * Tiles::kColumnTile) * std::int64_t{sizeof(typename Tiles::Stored)} +
      Tiles::kScratchBytes + GatheredColumns<Tiles, false>::kSharedBytes;
  static_assert(kShared <= 99 * 1024);
  const BlockForwardArguments<Tiles> arguments{read_columns<Tiles>(op.qkv.q),
                                               read_columns<Tiles>(op.qkv.k),
                                               value_distance(op.qkv),
                                               written_columns<Tiles>(all_columns(op.out)),
                                               op.lse.as<A>(),
                                               HeadLayout(shape),
                                               order,
                                               static_cast<A>(op.scale),
                                               op.dropout,
                                               BlockWords<false>(op.mask, shape)};
  launch(context.stream, {planes * tiles, 1, Tiles::kThreads, kShared}, attend_blocks<Tiles>,
         arguments);
}

}  // namespace

void attend_to_blocks(const AttentionForward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2) {
      if (fits_mma<T>(op.shape, op.qkv.q, op.qkv.k, op.qkv.v, all_columns(op.out))) {
        return op.shape.head_size <= 64 ? run_blocks<MmaTiles<T, 64, 1, 64, true>>(op, context)
                                        : run_blocks<MmaTiles<T, 128, 1, 64>>(op, context);
      }
    }
    with_fma_tiles(op.qkv.dtype(), op.shape.head_size,
                   [&](auto tiles) { run_blocks<typename decltype(tiles)::type>(op, context); });
  });
}

}  // namespace zl::cuda
