// Backward of LayerNorm and RMSNorm, fused with the residual's gradient. Blocks take rows in turn
// and keep their shares of dweight and dbias; a second kernel adds the shares in order.
#include <math.h>

#include <algorithm>

#include "backends/cuda/kernel/column_sum.h"
#include "backends/cuda/kernel/team.h"
#include "core/ops/norm.h"

namespace zl::cuda {
namespace {

constexpr int kLongRowThreads = 512, kBlocksPerMultiprocessor = 2;

template <class T>
struct Arguments {
  const T *dout, *x, *weight;
  const Math<T>*mean, *rstd;
  const T* dresidual;
  T* dx;
  Math<T>* partials;  // [blocks][2 * columns]: shares of dweight, then of dbias
  std::int64_t rows, columns;
  Math<T> weight_offset;
};

template <class T>
struct RowStatistics {
  Math<T> mean, rstd;
  __device__ RowStatistics(const Arguments<T>& a, std::int64_t r)
      : mean(a.mean == nullptr ? 0 : a.mean[r]), rstd(a.rstd[r]) {}
  __device__ RowStatistics() : mean(0), rstd(0) {}
  __device__ __forceinline__ Math<T> xhat(T x) const { return (load_value(x) - mean) * rstd; }
};

// A thread's shares of the two sums over rows.
template <class T>
struct Shares {
  Math<T> dweight[kTeamPacks][kPack<T>] = {}, dbias[kTeamPacks][kPack<T>] = {};
};

// What a thread holds of a row: 0 beyond it, which adds nothing to any sum.
template <class T>
struct Row {
  Packed<T> x[kTeamPacks], dout[kTeamPacks];

  __device__ __forceinline__ void load(const Arguments<T>& a, const Team& team,
                                       std::int64_t start) {
#pragma unroll
    for (int k = 0; k < kTeamPacks; ++k) {
      const int column = team.column<T>(k);
      if (column >= a.columns) continue;
      x[k] = load_packed_streaming(a.x + start + column);
      dout[k] = load_packed_streaming(a.dout + start + column);
    }
  }
};

// Rows wait twice for memory, and registers leave room for few at a time: the L2 cache takes the
// next one meanwhile.
template <class T>
__device__ __forceinline__ void prefetch_row(const Arguments<T>& a, const Team& team,
                                             std::int64_t start) {
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const int column = team.column<T>(k);
    if (column >= a.columns) continue;
    prefetch(a.x + start + column);
    prefetch(a.dout + start + column);
    if (a.dresidual != nullptr) prefetch(a.dresidual + start + column);
  }
}

// sums = of g xhat and of g = dout weight, over the thread's part of the row.
template <class T>
__device__ __forceinline__ void add_row(const Arguments<T>& a, const Team& team, const Row<T>& row,
                                        const RowStatistics<T>& statistics, Shares<T>& shares,
                                        Math<T> (&sums)[2]) {
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const int column = team.column<T>(k);
    if (column >= a.columns) continue;
    const Packed<T> weight = load_packed(a.weight + column);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      const Math<T> xhat = statistics.xhat(row.x[k].at[i]), d = load_value(row.dout[k].at[i]);
      const Math<T> g = d * (a.weight_offset + load_value(weight.at[i]));
      shares.dweight[k][i] += d * xhat;
      shares.dbias[k][i] += d;
      sums[0] += g * xhat;
      sums[1] += g;
    }
  }
}

// With xhat = (x - mean) rstd and g = dout weight:
// dx = dresidual + rstd (g - avg(g) - xhat avg(g xhat)), avg(g) absent in RMSNorm.
template <class T>
__device__ __forceinline__ void store_dx(const Arguments<T>& a, const Team& team,
                                         std::int64_t start, const Row<T>& row,
                                         const RowStatistics<T>& statistics, Math<T> along,
                                         Math<T> average) {
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const int column = team.column<T>(k);
    if (column >= a.columns) continue;
    const Packed<T> weight = load_packed(a.weight + column);
    Packed<T> residual, dx;  // 0 is 0 in every type
    if (a.dresidual != nullptr) residual = load_packed_streaming(a.dresidual + start + column);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      const Math<T> xhat = statistics.xhat(row.x[k].at[i]);
      const Math<T> g =
          load_value(row.dout[k].at[i]) * (a.weight_offset + load_value(weight.at[i]));
      dx.at[i] = store_value<T>(load_value(residual.at[i]) +
                                statistics.rstd * (g - average - xhat * along));
    }
    store_packed(a.dx + start + column, dx);
  }
}

// target[column ...] (+)= the thread's shares.
template <class T>
__device__ __forceinline__ void put_shares(const Team& team, std::int64_t columns, bool add,
                                           const Math<T> (&shares)[kTeamPacks][kPack<T>],
                                           Math<T>* target) {
  using A = Math<T>;
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const int column = team.column<T>(k);
    if (column >= columns) continue;
#pragma unroll
    for (int i = 0; i < kPack<T>; i += kPack<A>) {
      Packed<A> total;
      if (add) total = load_packed(target + column + i);
#pragma unroll
      for (int j = 0; j < kPack<A>; ++j) total.at[j] += shares[k][i + j];
      store_packed(target + column + i, total);
    }
  }
}

// Teams add theirs one after the other, in shared memory of 2 * columns elements.
template <class T>
__device__ __forceinline__ void put_block_shares(const Arguments<T>& a, const Team& team, int teams,
                                                 const Shares<T>& shares) {
  Math<T>* mine = a.partials + std::int64_t{blockIdx.x} * 2 * a.columns;
  Math<T>* total = teams == 1 ? mine : dynamic_shared<Math<T>>();
  for (int turn = 0; turn < teams; ++turn) {
    if (team.index == turn) {
      put_shares<T>(team, a.columns, turn > 0, shares.dweight, total);
      put_shares<T>(team, a.columns, turn > 0, shares.dbias, total + a.columns);
    }
    if (teams > 1) __syncthreads();
  }
  if (teams == 1) return;
  for (std::int64_t i = threadIdx.x; i < 2 * a.columns; i += blockDim.x) mine[i] = total[i];
}

template <class T>
__global__ void __launch_bounds__(kTeamThreads) differentiate_rows(Arguments<T> a, int warps) {
  using A = Math<T>;
  __shared__ A scratch[64];
  const Team team(warps);
  const int teams = static_cast<int>(blockDim.x) / (32 * warps);
  const A width = static_cast<A>(a.columns);
  Shares<T> shares;
  // The same number of turns for every team: they share barriers.
  for (std::int64_t first = std::int64_t{blockIdx.x} * teams; first < a.rows;
       first += std::int64_t{gridDim.x} * teams) {
    const std::int64_t r = first + team.index, start = r * a.columns;
    const bool works = r < a.rows;
    const RowStatistics<T> statistics = works ? RowStatistics<T>(a, r) : RowStatistics<T>();
    Row<T> row;
    if (works) row.load(a, team, start);
    const std::int64_t next = r + std::int64_t{gridDim.x} * teams;
    if (next < a.rows) prefetch_row(a, team, next * a.columns);
    A sums[2] = {};
    add_row(a, team, row, statistics, shares, sums);
    team_sums(team, scratch, sums);
    const A average = a.mean == nullptr ? A{0} : sums[1] / width;
    if (works) store_dx(a, team, start, row, statistics, sums[0] / width, average);
  }
  put_block_shares(a, team, teams, shares);
}

// A block per row; each thread keeps the shares of its own columns in the workspace.
template <class T>
__global__ void __launch_bounds__(kLongRowThreads) differentiate_long_rows(Arguments<T> a) {
  using A = Math<T>;
  __shared__ A scratch[32];
  A* dweight = a.partials + std::int64_t{blockIdx.x} * 2 * a.columns;
  A* dbias = dweight + a.columns;
  const A width = static_cast<A>(a.columns);
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) dweight[c] = dbias[c] = 0;
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const T *x = a.x + r * a.columns, *dout = a.dout + r * a.columns;
    const RowStatistics<T> statistics(a, r);
    A along = 0, average = 0;
    for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const A xhat = statistics.xhat(x[c]), d = load_value(dout[c]);
      const A g = d * (a.weight_offset + load_value(a.weight[c]));
      dweight[c] += d * xhat;
      dbias[c] += d;
      along += g * xhat;
      average += g;
    }
    along = block_reduce(along, scratch, AddOf{}) / width;
    average = a.mean == nullptr ? A{0} : block_reduce(average, scratch, AddOf{}) / width;
    for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
      const A g = load_value(dout[c]) * (a.weight_offset + load_value(a.weight[c]));
      const A residual = a.dresidual == nullptr ? A{0} : load_value(a.dresidual[r * a.columns + c]);
      const A dx = statistics.rstd * (g - average - statistics.xhat(x[c]) * along);
      a.dx[r * a.columns + c] = store_value<T>(residual + dx);
    }
  }
}

template <class T, class G>
void run(const NormBackward& op, const ExecContext& context) {
  using A = Math<T>;
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  const std::int64_t row_bytes = 2 * columns * static_cast<std::int64_t>(sizeof(A));
  auto* partials = reinterpret_cast<A*>(context.workspace);
  // Absent tensors are null.
  const bool layer_norm = op.kind == NormKind::layer_norm;
  const Arguments<T> arguments{op.dout.as<T>(),
                               op.x.as<T>(),
                               op.weight.as<T>(),
                               layer_norm ? op.mean.as<A>() : nullptr,
                               op.rstd.as<A>(),
                               op.dresidual.as<T>(),
                               op.dx.as<T>(),
                               partials,
                               rows,
                               columns,
                               static_cast<A>(op.weight_offset)};
  const std::int64_t most =
      std::min(workspace_rows(context, row_bytes, op.kName),
               std::int64_t{kBlocksPerMultiprocessor} * context.multiprocessors);
  const bool packed =
      aligned_16(op.dout.data, op.x.data, op.weight.data, op.dresidual.data, op.dx.data);
  const int warps = packed ? team_warps<T>(columns) : 0;
  const int block = warps > 0 ? team_block(warps)
                              : static_cast<int>(std::clamp<std::int64_t>(
                                    blocks_for(columns, 32) * 32, 32, kLongRowThreads));
  const std::int64_t teams = warps > 0 ? block / (32 * warps) : 1;
  const std::int64_t blocks = std::clamp<std::int64_t>(blocks_for(rows, teams), 1, most);
  if (warps > 0) {
    launch(context.stream, {blocks, 1, block, teams > 1 ? row_bytes : 0}, differentiate_rows<T>,
           arguments, warps);
  } else {
    launch(context.stream, {blocks, 1, block, 0}, differentiate_long_rows<T>, arguments);
  }
  launch_column_sums(context, partials, blocks, 2 * columns, columns, op.accumulate,
                     op.dweight.as<G>(), op.dbias.as<G>());
}

}  // namespace

void execute(const NormBackward& op, const ExecContext& context) {
  if (op.dweight.count() == 0) return;
  require(op.dbias.empty() || op.dbias.dtype == op.dweight.dtype, op.kName,
          "dweight and dbias of one type");
  with_gradient_type(op.x.dtype, op.dweight.dtype, op.kName, [&](auto type, auto gradient) {
    run<decltype(type), decltype(gradient)>(op, context);
  });
}

}  // namespace zl::cuda
