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
                                            const GatheredMask<Tiles, false>& mask,
                                            const GatheredTile<Tiles>& tile, Scores& scores) {
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
#pragma unroll
    for (int c = 0; c < Scores::kOwn; ++c) {
      if (!mask.sees(tiles, tile, r, c)) {
        scores.at(r, c) = static_cast<typename Tiles::Arithmetic>(-INFINITY);
      }
    }
  }
}

template <class Tiles, class Scores>
__device__ __forceinline__ void drop_gathered(const Tiles& tiles, const DropoutSpec& spec,
                                              const GatheredTile<Tiles>& tile,
                                              std::int64_t first_row, int keys, Scores& scores) {
  DropoutFactors<typename Tiles::Arithmetic> factors(spec);
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
    const std::int64_t line = (first_row + tiles.row(r)) * keys;
#pragma unroll
    for (int c = 0; c < Scores::kOwn; ++c) {
      scores.at(r, c) *= factors.at(line + tile.position(tiles, c));
    }
  }
}

// As many as registers last.
template <class Tiles, bool kDropout>
inline constexpr int kResidentBlocks = Tiles::kBlocksPerMultiprocessor +
                                       (Tiles::kWidth == 64 && !kDropout ? 1 : 0);

// One block: kTileRows queries of one head.
template <class Tiles, bool kDropout>
__global__ void __launch_bounds__(Tiles::kThreads, (kResidentBlocks<Tiles, kDropout>))
    attend_blocks(BlockForwardArguments<Tiles> a) {
  using A = typename Tiles::Arithmetic;
  using Stored = typename Tiles::Stored;
  auto* queries = dynamic_shared<Stored>();
  auto* columns = queries + Tiles::kRowTile;  // [kStages][2] tiles: keys, values
  auto* scratch = reinterpret_cast<std::byte*>(columns + 2 * Tiles::kStages * Tiles::kColumnTile);
  const Tiles tiles(scratch);
  const TileOrder::Place place = a.order.locate(blockIdx.x);
  const std::int64_t plane = place.plane, batch = plane / a.layout.heads;
  const int head = static_cast<int>(plane % a.layout.heads);
  const int query = (static_cast<int>(a.order.tiles) - 1 - place.rank) * Tiles::kTileRows;
  const auto key_rows = a.layout.key(a.k, batch, head / a.layout.group);
  const auto value_rows = a.layout.value_of_key(key_rows, a.value_distance);
  const GatheredMask<Tiles, false> mask(a.blocks, query, a.blocks.limit(a.layout, batch));
  GatheredColumns<Tiles, false> gathered(a.blocks, query, head, head + 1,
                                         scratch + Tiles::kScratchBytes);
  const auto fetch = [&](const GatheredTile<Tiles>& tile, int stage) {
    Stored* to = columns + 2 * stage * Tiles::kColumnTile;
    tile.copy(tiles, to, key_rows);
    tile.copy(tiles, to + Tiles::kColumnTile, value_rows);
    tiles.commit();
  };

  tiles.template copy<Tiles::kTileRows>(queries, a.layout.query(a.q, batch, head), query);
  __syncthreads();
  fetch(gathered.tile(), gathered.stage());
  tiles.wait();
  __syncthreads();
  const typename Tiles::RowOperand left = tiles.rows(queries);
  RunningSoftmax<Tiles> softmax;
  typename Tiles::template Values<Tiles::kWidth> sums;
  const auto work = [&](const GatheredTile<Tiles>& tile, bool masked, const auto& meets) {
    const Stored* keys = columns + 2 * gathered.stage() * Tiles::kColumnTile;
    typename Tiles::template Values<Tiles::kTileColumns> scores;
    tiles.multiply(left, keys, a.layout.head_size, scores, meets);
    if (masked) hide_unseen(tiles, mask, tile, scores);
    softmax.update(a.scale * kLog2E<A>, scores, sums);
    if (kDropout && a.dropout.p > 0) {
      drop_gathered(tiles, a.dropout, tile,
                    a.layout.global_plane(plane) * a.layout.sequence + query, a.layout.keys,
                    scores);
    }
    tiles.accumulate(scores, keys + Tiles::kColumnTile, sums, meets);
  };
  while (!gathered.at_end()) {
    if (Tiles::kStages == 2 && !gathered.at_last()) fetch(gathered.next(), gathered.next_stage());
    const int word = gathered.bring();
    const GatheredTile<Tiles> tile = gathered.tile();
    const Meeting meeting = mask.meeting(tiles, tile);
    if (meeting == Meeting::all) work(tile, false, EveryRow{});
    if (meeting == Meeting::some) {
      work(tile, true, [&](int row, int column) { return mask.meets(tile, row, column); });
    }
    if (Tiles::kStages == 1) {
      __syncthreads();
      if (!gathered.at_last()) fetch(gathered.next(), 0);
    }
    gathered.step(word);
    tiles.wait();
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

template <class Tiles, bool kDropout>
void run_blocks(const AttentionForward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t tiles = blocks_for(shape.sequence, Tiles::kTileRows);
  const std::int64_t planes = shape.batch * shape.heads;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, tiles, 2 * shape.key_count() * shape.head_size * element);
  constexpr auto kShared = (Tiles::kRowTile + 2 * Tiles::kStages * Tiles::kColumnTile) *
                               std::int64_t{sizeof(typename Tiles::Stored)} +
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
  launch(context.stream, {planes * tiles, 1, Tiles::kThreads, kShared},
         attend_blocks<Tiles, kDropout>, arguments);
}

template <class T, bool kDropout>
void run_fast(const AttentionForward& op, const ExecContext& context) {
  if (op.shape.head_size <= 64)
    return run_blocks<MmaTiles<T, 64, 1, 64, true>, kDropout>(op, context);
  run_blocks<MmaTiles<T, 128, 1, 64>, kDropout>(op, context);
}

}  // namespace

void attend_to_blocks(const AttentionForward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2) {
      if (fits_mma<T>(op.shape, op.qkv.q, op.qkv.k, op.qkv.v, all_columns(op.out))) {
        return op.dropout.p > 0 ? run_fast<T, true>(op, context) : run_fast<T, false>(op, context);
      }
    }
    with_fma_tiles(op.qkv.dtype(), op.shape.head_size, [&](auto tiles) {
      run_blocks<typename decltype(tiles)::type, true>(op, context);
    });
  });
}

}  // namespace zl::cuda
