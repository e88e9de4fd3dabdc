#include "backends/cuda/aligned_parts.h"

#include "core/base/dtype.h"

namespace zl::cuda {
namespace {

constexpr std::int64_t kWidth = 8;  // 16-bit elements in 16 bytes

// The matrix from its column `columns` on, in rows as long as before.
TensorView from_column(TensorView matrix, std::int64_t columns) {
  matrix.data = matrix.flat(columns, 0).data;
  return matrix;
}

// Columns of c are rows of b.
std::vector<Gemm> cut_columns(const Gemm& gemm, std::int64_t whole) {
  Gemm wide = gemm, rest = gemm;
  wide.b = gemm.b.row_range(0, whole);
  rest.b = gemm.b.row_range(whole, gemm.n() - whole);
  rest.c = from_column(gemm.c, whole);
  return {rest, wide};
}

// The few terms come first: what they add up to is small, so that its rounding is.
std::vector<Gemm> cut_terms(const Gemm& gemm, std::int64_t whole) {
  Gemm wide = gemm, rest = gemm;
  wide.b = gemm.b.row_range(0, whole);
  rest.b = gemm.b.row_range(whole, gemm.k() - whole);
  rest.a = from_column(gemm.a, whole);
  wide.accumulate = true;
  return {rest, wide};
}

// Rows of c are columns of a.
std::vector<Gemm> cut_rows(const Gemm& gemm, std::int64_t whole) {
  Gemm wide = gemm, rest = gemm;
  wide.c = gemm.c.row_range(0, whole);
  rest.c = gemm.c.row_range(whole, gemm.m() - whole);
  rest.a = from_column(gemm.a, whole);
  return {rest, wide};
}

}  // namespace

std::vector<Gemm> aligned_parts(const Gemm& gemm) {
  const auto whole = [](std::int64_t width) { return width / kWidth * kWidth; };
  const auto is_cut = [&](std::int64_t width) { return whole(width) > 0 && whole(width) < width; };
  if (!gemm.padded || !is_half(gemm.a.dtype)) return {gemm};
  if (gemm.trans_a) return is_cut(gemm.m()) ? cut_rows(gemm, whole(gemm.m())) : std::vector{gemm};
  if (gemm.trans_b && is_cut(gemm.n())) return cut_columns(gemm, whole(gemm.n()));
  if (!gemm.trans_b && is_cut(gemm.k())) return cut_terms(gemm, whole(gemm.k()));
  return {gemm};
}

}  // namespace zl::cuda
