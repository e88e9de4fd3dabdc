#include "backends/cpu/ops/gemm_eigen.h"

// The ops' own teams share the work out (parallel.h); Eigen must not open others inside.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

#include "backends/cpu/ops/parallel.h"
#include "core/ops/matmul.h"

namespace zl::cpu {
namespace {

// One task's part of c. Fixed, so that sums are cut alike for every thread count.
constexpr std::int64_t kTileRows = 192, kTileColumns = 512;

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
Eigen::Map<const Matrix<T>> matrix_of(const TensorView& view) {
  return {view.as<const T>(), view.shape[0], view.shape[1]};
}

template <class Tile, class Left, class Right>
void multiply(bool accumulate, const Left& left, const Right& right, Tile& tile) {
  if (accumulate) {
    tile.noalias() += left * right;
  } else {
    tile.noalias() = left * right;
  }
}

template <class T>
void compute_tile(const Gemm& op, std::int64_t row, std::int64_t column) {
  const std::int64_t rows = std::min(kTileRows, op.m() - row);
  const std::int64_t columns = std::min(kTileColumns, op.n() - column);
  Eigen::Map<Matrix<T>> c(op.c.as<T>(), op.m(), op.c.columns());
  auto tile = c.block(row, column, rows, columns);
  const auto a = matrix_of<T>(op.a), b = matrix_of<T>(op.b);
  const auto with_left = [&](const auto& left) {
    if (op.trans_b) {
      multiply(op.accumulate, left, b.middleRows(column, columns).transpose(), tile);
    } else {
      multiply(op.accumulate, left, b.middleCols(column, columns), tile);
    }
  };
  if (op.trans_a) {
    with_left(a.middleCols(row, rows).transpose());
  } else {
    with_left(a.block(row, 0, rows, op.k()));
  }
  if (op.bias.empty()) return;
  using Row = Eigen::Matrix<T, 1, Eigen::Dynamic>;
  tile.rowwise() += Eigen::Map<const Row>(op.bias.as<const T>() + column, columns);
}

template <class T>
void product(const Gemm& op, const ExecContext& context) {
  const std::int64_t across = (op.n() + kTileColumns - 1) / kTileColumns;
  const std::int64_t down = (op.m() + kTileRows - 1) / kTileRows;
  const ExecContext team = product_team(context, op.m() * op.n() * op.k());
  parallel_tasks(team, across * down, [&](std::int64_t task) {
    compute_tile<T>(op, task / across * kTileRows, task % across * kTileColumns);
  });
}

}  // namespace

void eigen_gemm(const Gemm& op, const ExecContext& context) {
  if (op.a.dtype == DType::f64) {
    product<double>(op, context);
  } else {
    product<float>(op, context);
  }
}

}  // namespace zl::cpu
