// Attention forward: online softmax over tiles of keys (Dao et al. 2022, algorithm 1; the division
// of work among warps of Dao 2023, FlashAttention-2, section 3).
#include "backends/cuda/ops/attention_blocks.h"
#include "backends/cuda/ops/attention_fma.h"
#include "backends/cuda/ops/attention_mma.h"
#include "backends/cuda/ops/attention_softmax.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/attention.h"
#include "core/ops/dropout_spec.h"

namespace zl::cuda {
namespace {

template <class Tiles>
struct ForwardArguments {
  Columns<typename Tiles::Source> q, k;
  std::int64_t value_distance;
  Columns<typename Tiles::Target> out;
  typename Tiles::Arithmetic* lse;
  HeadLayout layout;
  TileOrder order;
  typename Tiles::Arithmetic scale;
  DropoutSpec dropout;
  ScoreBand<false> band;
};

template <class Tiles, class Scores>
__device__ __forceinline__ void drop(const Tiles& tiles, const DropoutSpec& spec,
                                     std::int64_t first_row, int keys, int key, Scores& scores) {
  DropoutFactors<typename Tiles::Arithmetic> factors(spec);
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
    const std::int64_t line = (first_row + tiles.row(r)) * keys + key;
#pragma unroll
    for (int c = 0; c < Scores::kOwn; ++c) scores.at(r, c) *= factors.at(line + tiles.column(c));
  }
}

// The queries [first, first + tile_rows) of one head that a block owns.
struct Owner {
  std::int64_t plane, batch;
  int head, first;

  __device__ __forceinline__ Owner(const HeadLayout& layout, const TileOrder& order,
                                   std::int64_t block, int tile_rows) {
    const TileOrder::Place place = order.locate(block);
    plane = place.plane;
    batch = plane / layout.heads;
    head = static_cast<int>(plane % layout.heads);
    first =
        (static_cast<int>(order.tiles) - 1 - place.rank) * tile_rows;  // the last have most keys
  }
};

// One block: kTileRows queries of one head against all tiles of keys that one of them sees. The
// next keys arrive during softmax and p v, the values during q k^T: one buffer each.
template <class Tiles, bool kDropout>
__global__ void __launch_bounds__(Tiles::kThreads, Tiles::kBlocksPerMultiprocessor)
    attend(ForwardArguments<Tiles> a) {
  using Rows = HeadRows<typename Tiles::Source>;
  using A = typename Tiles::Arithmetic;
  auto* queries = dynamic_shared<typename Tiles::Stored>();
  auto* keys = queries + Tiles::kRowTile;
  auto* values = keys + Tiles::kColumnTile;
  const Tiles tiles(reinterpret_cast<std::byte*>(values + Tiles::kColumnTile));
  const Owner owner(a.layout, a.order, blockIdx.x, Tiles::kTileRows);
  const int query = owner.first;
  const int end = a.band.end(a.layout, owner.batch, query, Tiles::kTileRows);
  const int begin = a.band.begin(query, Tiles::kTileColumns);
  const Rows key_rows = a.layout.key(a.k, owner.batch, owner.head / a.layout.group);
  const Rows value_rows = a.layout.value_of_key(key_rows, a.value_distance);

  tiles.template copy<Tiles::kTileRows>(queries, a.layout.query(a.q, owner.batch, owner.head),
                                        query);
  tiles.template copy<Tiles::kTileColumns>(keys, key_rows, begin);
  tiles.commit();
  tiles.wait();
  __syncthreads();
  const typename Tiles::RowOperand left = tiles.rows(queries);
  RunningSoftmax<Tiles> softmax;
  typename Tiles::template Values<Tiles::kWidth> sums;
  for (int key = begin; key < end; key += Tiles::kTileColumns) {
    const bool mine = a.band.meets(tiles, query, key);
    typename Tiles::template Values<Tiles::kTileColumns> scores;
    tiles.template copy<Tiles::kTileColumns>(values, value_rows, key);
    tiles.commit();
    if (mine) tiles.multiply(left, keys, a.layout.head_size, scores);
    tiles.wait();
    __syncthreads();
    if (key + Tiles::kTileColumns < end) {
      tiles.template copy<Tiles::kTileColumns>(keys, key_rows, key + Tiles::kTileColumns);
    }
    tiles.commit();
    if (mine) {
      a.band.apply(tiles, end, recomputed(query), key, scores);
      softmax.update(a.scale * kLog2E<A>, scores, sums);
      if (kDropout && a.dropout.p > 0) {
        const std::int64_t plane = a.layout.global_plane(owner.plane);
        drop(tiles, a.dropout, plane * a.layout.sequence + query, a.layout.keys, key, scores);
      }
      tiles.accumulate(scores, values, sums);
    }
    tiles.wait();
    __syncthreads();
  }

  // Found again, not kept through the loop.
  const Owner same(a.layout, a.order, recomputed(static_cast<int>(blockIdx.x)), Tiles::kTileRows);
  A factor[Tiles::kRows];
#pragma unroll
  for (int r = 0; r < Tiles::kRows; ++r) {
    const A total = softmax.total(r);
    const int row = same.first + tiles.row(r);
    factor[r] = total > 0 ? A{1} / total : A{0};
    if (row < a.layout.sequence && static_cast<int>(threadIdx.x) % Tiles::kRowLanes == 0) {
      a.lse[same.plane * a.layout.sequence + row] = softmax.peak[r] * a.scale + ::log(total);
    }
  }
  tiles.store(sums, factor, queries, a.layout.query(a.out, same.batch, same.head), same.first);
}

template <class Tiles, bool kDropout>
void run(const AttentionForward& op, const ExecContext& context) {
  using A = typename Tiles::Arithmetic;
  const AttentionShape& shape = op.shape;
  const std::int64_t tiles = blocks_for(shape.sequence, Tiles::kTileRows);
  const std::int64_t planes = shape.batch * shape.heads;
  const auto element = static_cast<std::int64_t>(size_of(op.qkv.dtype()));
  const TileOrder order(planes, tiles, 2 * shape.key_count() * shape.head_size * element);
  constexpr auto kShared =
      (Tiles::kRowTile + 2 * Tiles::kColumnTile) * std::int64_t{sizeof(typename Tiles::Stored)} +
      Tiles::kScratchBytes;
  const ForwardArguments<Tiles> arguments{read_columns<Tiles>(op.qkv.q),
                                          read_columns<Tiles>(op.qkv.k),
                                          value_distance(op.qkv),
                                          written_columns<Tiles>(all_columns(op.out)),
                                          op.lse.as<A>(),
                                          HeadLayout(shape),
                                          order,
                                          static_cast<A>(op.scale),
                                          op.dropout,
                                          ScoreBand<false>(op.mask, shape)};
  launch(context.stream, {planes * tiles, 1, Tiles::kThreads, kShared}, attend<Tiles, kDropout>,
         arguments);
}

template <class T, int kWidth>
void run_fast(const AttentionForward& op, const ExecContext& context) {
  constexpr bool kHold = kWidth == 64;
  // As many keys as registers last: dropout's random words take some.
  if (op.dropout.p > 0) return run<MmaTiles<T, kWidth, 1, 64, kHold>, true>(op, context);
  run<MmaTiles<T, kWidth, 2, kWidth == 64 ? 64 : 48, kHold>, false>(op, context);
}

}  // namespace

void execute(const AttentionForward& op, const ExecContext& context) {
  check_attention(op.shape, op.qkv, op.scale, op.kName);
  if (op.out.count() == 0) return;
  if (op.mask.has_blocks()) return attend_to_blocks(op, context);
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    if constexpr (sizeof(T) == 2) {
      if (fits_mma<T>(op.shape, op.qkv.q, op.qkv.k, op.qkv.v, all_columns(op.out))) {
        return op.shape.head_size <= 64 ? run_fast<T, 64>(op, context)
                                        : run_fast<T, 128>(op, context);
      }
    }
    with_fma_tiles(op.qkv.dtype(), op.shape.head_size,
                   [&](auto tiles) { run<typename decltype(tiles)::type, true>(op, context); });
  });
}

}  // namespace zl::cuda
