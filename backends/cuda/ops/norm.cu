// LayerNorm and RMSNorm with the fused residual addition. A team of warps holds a row in registers;
// rows that are too long or not made of whole packs are read three times by a block.
#include <math.h>

#include <algorithm>

#include "backends/cuda/kernel/dropout.h"
#include "backends/cuda/kernel/team.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/norm.h"

namespace zl::cuda {
namespace {

constexpr int kLongRowThreads = 512;

template <class T>
struct Arguments {
  const T *x, *add;
  T* sum;
  const T *weight, *bias;
  T* out;
  Math<T>*mean, *rstd;
  std::int64_t rows, columns;
  Math<T> epsilon, weight_offset;
  DropoutSpec dropout;
  bool layer_norm;
};

// row = x + dropout(add), rounded to T as the backward will read it. kDropout: there may be any.
template <bool kDropout, class T, int kCount>
__device__ __forceinline__ void add_residual(const Arguments<T>& a, std::int64_t index,
                                             const T (&add)[kCount], T (&row)[kCount]) {
  Math<T> added[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) added[i] = load_value(add[i]);
  if constexpr (kDropout) apply_dropout(a.dropout, index, added);
#pragma unroll
  for (int i = 0; i < kCount; ++i) row[i] = store_value<T>(load_value(row[i]) + added[i]);
}

template <class T>
__device__ __forceinline__ Math<T> finish_row(const Arguments<T>& a, std::int64_t r, Math<T> mean,
                                              Math<T> square, bool writes) {
  using A = Math<T>;
  const A rstd = A{1} / sqrt(square / static_cast<A>(a.columns) + a.epsilon);
  if (writes) {
    if (a.layer_norm) a.mean[r] = mean;
    a.rstd[r] = rstd;
  }
  return rstd;
}

template <bool kDropout, class T>
__device__ __forceinline__ void load_row(const Arguments<T>& a, const Team& team,
                                         std::int64_t start, Packed<T> (&row)[kTeamPacks]) {
  Packed<T> add[kTeamPacks];
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const int column = team.column<T>(k);
    if (column >= a.columns) continue;
    row[k] = load_packed_streaming(a.x + start + column);
    if (a.add != nullptr) add[k] = load_packed_streaming(a.add + start + column);
  }
  if (a.add == nullptr) return;
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const std::int64_t index = start + team.column<T>(k);
    if (team.column<T>(k) >= a.columns) continue;
    add_residual<kDropout>(a, index, add[k].at, row[k].at);
    store_packed(a.sum + index, row[k]);
  }
}

template <class T>
__device__ __forceinline__ void store_row(const Arguments<T>& a, const Team& team,
                                          std::int64_t start, Math<T> mean, Math<T> rstd,
                                          const Packed<T> (&row)[kTeamPacks]) {
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    const int column = team.column<T>(k);
    if (column >= a.columns) continue;
    const Packed<T> weight = load_packed(a.weight + column);
    Packed<T> bias, out;  // 0 is 0 in every type
    if (a.bias != nullptr) bias = load_packed(a.bias + column);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      const Math<T> xhat = (load_value(row[k].at[i]) - mean) * rstd;
      const Math<T> scale = a.weight_offset + load_value(weight.at[i]);
      out.at[i] = store_value<T>(xhat * scale + load_value(bias.at[i]));
    }
    store_packed(a.out + start + column, out);
  }
}

// Two passes over the row, as the CPU: the squares are of differences from the mean. 64 registers:
// as many warps as it takes to keep the memory busy.
template <class T, bool kDropout>
__global__ void __launch_bounds__(kTeamThreads, kDropout ? 1 : 2)
    normalise_rows(Arguments<T> a, int warps) {
  using A = Math<T>;
  __shared__ A scratch[32];
  const Team team(warps);
  const std::int64_t teams = blockDim.x / (32 * warps);
  const std::int64_t r = blockIdx.x * teams + team.index, start = r * a.columns;
  const bool works = r < a.rows;  // the others only take part in barriers
  Packed<T> row[kTeamPacks];
  if (works) load_row<kDropout>(a, team, start, row);
  A mean[1] = {}, square[1] = {};
  if (a.layer_norm) {
#pragma unroll
    for (int k = 0; k < kTeamPacks; ++k) {
#pragma unroll
      for (int i = 0; i < kPack<T>; ++i) mean[0] += load_value(row[k].at[i]);
    }
    team_sums(team, scratch, mean);
    mean[0] /= static_cast<A>(a.columns);
  }
#pragma unroll
  for (int k = 0; k < kTeamPacks; ++k) {
    if (team.column<T>(k) >= a.columns) continue;
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      const A centred = load_value(row[k].at[i]) - mean[0];
      square[0] += centred * centred;
    }
  }
  team_sums(team, scratch, square);
  if (!works) return;
  const A rstd = finish_row(a, r, mean[0], square[0], team.rank == 0);
  store_row(a, team, start, mean[0], rstd, row);
}

// A block per row, which each thread reads again where it wrote it.
template <class T>
__global__ void __launch_bounds__(kLongRowThreads, 2) normalise_long_row(Arguments<T> a) {
  using A = Math<T>;
  __shared__ A scratch[32];
  const std::int64_t r = blockIdx.x, start = r * a.columns;
  const T* row = (a.add == nullptr ? a.x : a.sum) + start;
  A mean = 0, square = 0;
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    T value[1] = {a.x[start + c]};
    if (a.add != nullptr) {
      const T add[1] = {a.add[start + c]};
      add_residual<true>(a, start + c, add, value);
      a.sum[start + c] = value[0];
    }
    mean += load_value(value[0]);
  }
  mean = a.layer_norm ? block_reduce(mean, scratch, AddOf{}) / static_cast<A>(a.columns) : A{0};
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    const A centred = load_value(row[c]) - mean;
    square += centred * centred;
  }
  const A rstd = finish_row(a, r, mean, block_reduce(square, scratch, AddOf{}), threadIdx.x == 0);
  for (std::int64_t c = threadIdx.x; c < a.columns; c += blockDim.x) {
    const A bias = a.bias == nullptr ? A{0} : load_value(a.bias[c]);
    const A scale = a.weight_offset + load_value(a.weight[c]);
    a.out[start + c] = store_value<T>((load_value(row[c]) - mean) * rstd * scale + bias);
  }
}

template <class T>
void run(const NormForward& op, const ExecContext& context) {
  using A = Math<T>;
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  const Arguments<T> arguments{op.x.as<T>(),
                               op.add.as<T>(),  // absent tensors are null
                               op.sum.as<T>(),
                               op.weight.as<T>(),
                               op.bias.as<T>(),
                               op.out.as<T>(),
                               op.mean.as<A>(),
                               op.rstd.as<A>(),
                               rows,
                               columns,
                               static_cast<A>(op.epsilon),
                               static_cast<A>(op.weight_offset),
                               op.dropout,
                               op.kind == NormKind::layer_norm};
  const bool packed =
      aligned_16(op.x.data, op.add.data, op.sum.data, op.weight.data, op.bias.data, op.out.data);
  if (const int warps = packed ? team_warps<T>(columns) : 0; warps > 0) {
    const int block = team_block(warps);
    launch(context.stream, {blocks_for(rows, block / (32 * warps)), 1, block, 0},
           op.dropout.p > 0 ? normalise_rows<T, true> : normalise_rows<T, false>, arguments, warps);
  } else {
    const auto block = std::clamp<std::int64_t>(blocks_for(columns, 32) * 32, 32, kLongRowThreads);
    launch(context.stream, {rows, 1, static_cast<int>(block), 0}, normalise_long_row<T>, arguments);
  }
}

}  // namespace

void execute(const NormForward& op, const ExecContext& context) {
  if (op.x.count() == 0) return;
  with_float_type(op.x.dtype, op.kName, [&](auto type) { run<decltype(type)>(op, context); });
}

}  // namespace zl::cuda
