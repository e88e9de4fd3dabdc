// Column sums, the gradient of a bias: parts of the rows are summed into the workspace, then the
// parts in order. The cut depends on the shape and the device only.
#include <algorithm>

#include "backends/cuda/kernel/column_sum.h"
#include "core/ops/matmul.h"

namespace zl::cuda {
namespace {

// partials[part][column] = sum over the part's rows. Block: kColumnLanes groups of kWidth
// neighbouring columns x kRowLanes rows.
template <class T, int kWidth>
__global__ void __launch_bounds__(kColumnLanes* kRowLanes)
    sum_parts(const T* dout, std::int64_t rows, std::int64_t columns, std::int64_t rows_per_part,
              Math<T>* partials) {
  using A = Math<T>;
  __shared__ A sums[kRowLanes][kColumnLanes * kWidth];
  const int lane = static_cast<int>(threadIdx.x) % kColumnLanes;
  const int row_lane = static_cast<int>(threadIdx.x) / kColumnLanes;
  const std::int64_t column = (std::int64_t{blockIdx.x} * kColumnLanes + lane) * kWidth;
  const std::int64_t begin = blockIdx.y * rows_per_part;
  const std::int64_t end = begin + rows_per_part < rows ? begin + rows_per_part : rows;
  A sum[kWidth] = {};
  if (column < columns) {
    for (std::int64_t row = begin + row_lane; row < end; row += kRowLanes) {
      const T* from = dout + row * columns + column;
      if constexpr (kWidth == 1) {
        sum[0] += load_value(*from);
      } else {
        const Packed<T> pack = load_packed_streaming(from);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] += load_value(pack.at[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[row_lane][lane * kWidth + i] = sum[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kColumnLanes * kWidth;
       i += kColumnLanes * kRowLanes) {
    const std::int64_t mine = std::int64_t{blockIdx.x} * kColumnLanes * kWidth + i;
    if (mine >= columns) continue;
    A total = sums[0][i];
    for (int other = 1; other < kRowLanes; ++other) total += sums[other][i];
    partials[blockIdx.y * columns + mine] = total;
  }
}

template <class T, class G>
void sum_rows(const BiasBackward& op, const ExecContext& context) {
  using A = Math<T>;
  const std::int64_t rows = op.dout.rows(), columns = op.dout.columns();
  const bool packed = aligned_16(op.dout.data) && columns % kPack<T> == 0;
  const std::int64_t width = packed ? kPack<T> : 1;
  const std::int64_t tiles = blocks_for(columns, kColumnLanes * width);
  const std::int64_t room =
      workspace_rows(context, columns * static_cast<std::int64_t>(sizeof(A)), op.kName);
  // Eight blocks a multiprocessor, but at least 64 rows for each.
  const std::int64_t wanted =
      std::min(blocks_for(std::int64_t{8} * context.multiprocessors, tiles), blocks_for(rows, 64));
  const std::int64_t most = std::clamp<std::int64_t>(std::min(wanted, room), 1, kMaxGridY);
  const std::int64_t rows_per_part = std::max<std::int64_t>(blocks_for(rows, most), 1);
  const std::int64_t parts = std::max<std::int64_t>(blocks_for(rows, rows_per_part), 1);
  auto* partials = reinterpret_cast<A*>(context.workspace);
  launch(context.stream, {tiles, parts, kColumnLanes * kRowLanes, 0},
         packed ? sum_parts<T, kPack<T>> : sum_parts<T, 1>, op.dout.as<T>(), rows, columns,
         rows_per_part, partials);
  launch_column_sums(context, partials, parts, columns, columns, op.accumulate, op.dbias.as<G>());
}

}  // namespace

void execute(const BiasBackward& op, const ExecContext& context) {
  if (op.dbias.count() == 0) return;
  with_float_type(op.dout.dtype, op.kName, [&](auto type) {
    with_float_type(op.dbias.dtype, op.kName, [&](auto gradient) {
      sum_rows<decltype(type), decltype(gradient)>(op, context);
    });
  });
}

}  // namespace zl::cuda
