// Sums of the columns of a matrix of partial results, in a fixed order: the second half of every
// gradient that is a sum over rows. Ownership: nothing. Threads: device code and its launcher.
#pragma once

#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/packed.h"
#include "backends/cuda/ops/ops.h"

namespace zl::cuda {

inline constexpr int kColumnLanes = 32, kRowLanes = 8;  // of a block
inline constexpr int kPartLanes = 16;                   // of a block that sums parts

// out[column] (+)= sum over parts of partials[part * stride + column]; grid y = 1 does the same for
// `next`, whose partials lie behind those of out.
template <class A, class G>
__global__ void __launch_bounds__(kColumnLanes* kPartLanes)
    sum_columns(const A* partials, std::int64_t parts, std::int64_t stride, std::int64_t columns,
                bool accumulate, G* out, G* next) {
  __shared__ A sums[kPartLanes][kColumnLanes];
  if (blockIdx.y == 1) {
    partials += columns;
    out = next;
  }
  const int lane = static_cast<int>(threadIdx.x) % kColumnLanes;
  const int row_lane = static_cast<int>(threadIdx.x) / kColumnLanes;
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnLanes + lane;
  A sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t part = row_lane; part < parts; part += kPartLanes) {
      sum += partials[part * stride + column];
    }
  }
  sums[row_lane][lane] = sum;
  __syncthreads();
  if (row_lane != 0 || column >= columns) return;
  for (int other = 1; other < kPartLanes; ++other) sum += sums[other][lane];
  if (accumulate) sum += static_cast<A>(load_value(out[column]));
  out[column] = store_value<G>(sum);
}

template <class A, class G>
void launch_column_sums(const ExecContext& context, const A* partials, std::int64_t parts,
                        std::int64_t stride, std::int64_t columns, bool accumulate, G* out,
                        std::type_identity_t<G>* next = nullptr) {
  launch(context.stream,
         {blocks_for(columns, kColumnLanes), next == nullptr ? 1 : 2, kColumnLanes * kPartLanes, 0},
         sum_columns<A, G>, partials, parts, stride, columns, accumulate, out, next);
}

// How many rows of `row_bytes` fit the workspace; Error naming `op` when not even one does.
inline std::int64_t workspace_rows(const ExecContext& context, std::int64_t row_bytes,
                                   const char* op) {
  const std::int64_t rows = context.workspace_bytes / (row_bytes > 0 ? row_bytes : 1);
  if (rows < 1) {
    throw Error(ErrorCode::failed, std::string(op) + ": needs a workspace of at least " +
                                       std::to_string(row_bytes) + " bytes, has " +
                                       std::to_string(context.workspace_bytes));
  }
  return rows;
}

}  // namespace zl::cuda
