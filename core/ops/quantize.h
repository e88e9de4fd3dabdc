// Eight-bit blocks (Dettmers et al. 2022; ZeRO++, Wang et al. 2023): every block of elements of a
// row has the scale largest / 127 and signed bytes round(x / scale), ties to even. A block that
// holds an infinity or NaN has the scale infinity and comes back as NaN, so that overflows are
// seen.
#pragma once

#include "core/ops/checks.h"

namespace zl {

constexpr std::int64_t blocks_of(std::int64_t columns, std::int64_t block) {
  return (columns + block - 1) / block;
}

namespace quantize {

// q: u8 like x [rows, columns]; scales: f32 [rows, ceil(columns / block)].
inline void check(const TensorView& q, const TensorView& scales, std::int64_t block,
                  const char* op) {
  require(block > 0 && q.dtype == DType::u8 && scales.dtype == DType::f32, op,
          "q is u8, scales are f32, a block has elements");
  require(scales.rows() == q.rows() && scales.columns() == blocks_of(q.columns(), block), op,
          "scales has a row for each row of q, an element for each block");
}

}  // namespace quantize

// q and scales of x. x: any floating type but f64, [rows, columns].
struct BlockQuantize {
  static constexpr const char* kName = "block_quantize";
  TensorView x, q, scales;
  std::int64_t block = 256;

  void validate() const {
    quantize::check(q, scales, block, kName);
    require(x.rows() == q.rows() && x.columns() == q.columns(), kName, "x and q have one shape");
  }
  Cost cost() const {
    return streaming_cost(*this, 3.0 * static_cast<double>(x.count()), x.rows(), x.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(q, Access::write), f(scales, Access::write);
  }
};

// y = q * scale in y's type: any floating type but f64, of q's shape.
struct BlockDequantize {
  static constexpr const char* kName = "block_dequantize";
  TensorView q, scales, y;
  std::int64_t block = 256;

  void validate() const {
    quantize::check(q, scales, block, kName);
    require(y.rows() == q.rows() && y.columns() == q.columns(), kName, "y and q have one shape");
  }
  Cost cost() const {
    return streaming_cost(*this, static_cast<double>(y.count()), y.rows(), y.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(q, Access::read), f(scales, Access::read), f(y, Access::write);
  }
};

// out = factor * (sum over the rows of q, in order, of q * scale) (+ out when accumulate): what N
// ranks sent about one chunk. out: any floating type but f64, [columns]; arithmetic in f32.
struct BlockSum {
  static constexpr const char* kName = "block_sum";
  TensorView q, scales, out;
  std::int64_t block = 256;
  float factor = 1;
  bool accumulate = false;

  void validate() const {
    quantize::check(q, scales, block, kName);
    require(out.count() == q.columns(), kName, "out has a row's elements");
  }
  Cost cost() const {
    return streaming_cost(*this, 2.0 * static_cast<double>(q.count()), q.rows(), q.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(q, Access::read), f(scales, Access::read);
    f(out, accumulate ? Access::read_write : Access::write);
  }
};

}  // namespace zl
