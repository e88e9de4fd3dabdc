// Matrix products and their bias gradient.
#pragma once

#include "core/ops/checks.h"

namespace zl {

// c[M,N] = op(a)[M,K] * op(b)[K,N] (+ bias[N]) (+ c when accumulate); op transposes when trans_*.
// Types: a and b alike (f64, f32, bf16, f16); c the same type or, for 16-bit inputs, f32;
// bias of a's type, may be absent. Sums are kept in f32 (f64 for f64).
// padded: rows of a and of c may be longer than the product is wide, so that each begins at an
// address that libraries like; what lies behind is neither read nor written. No bias then.
struct Gemm {
  static constexpr const char* kName = "gemm";
  TensorView a, b, c, bias;
  bool trans_a = false, trans_b = false, accumulate = false, padded = false;

  std::int64_t m() const { return c.shape[0]; }
  std::int64_t n() const { return trans_b ? b.shape[0] : b.shape[1]; }
  std::int64_t k() const { return trans_b ? b.shape[1] : b.shape[0]; }

  void validate() const {
    require(a.shape.rank() == 2 && b.shape.rank() == 2 && c.shape.rank() == 2, kName,
            "a, b and c have rank 2");
    const auto is_row = [this](std::int64_t length, std::int64_t width) {
      return padded ? length >= width : length == width;
    };
    require(trans_a ? is_row(a.shape[1], m()) : a.shape[0] == m(), kName,
            "rows of op(a) = rows of c");
    require(is_row(c.shape[1], n()), kName, "columns of op(b) = columns of c");
    require(trans_a ? a.shape[0] == k() : is_row(a.shape[1], k()), kName,
            "rows of op(b) = columns of op(a)");
    require(!padded || bias.empty(), kName, "no bias where rows are padded");
    require(bias.empty() || bias.count() == n(), kName, "bias has one element per column of c");
    require(a.dtype == b.dtype, kName, "a and b have one type");
    require(c.dtype == a.dtype || (is_half(a.dtype) && c.dtype == DType::f32), kName,
            "c has the type of a, or f32 for 16-bit inputs");
  }
  Cost cost() const {
    const std::int64_t a_bytes = m() * k() * static_cast<std::int64_t>(size_of(a.dtype));
    const std::int64_t c_bytes = m() * n() * static_cast<std::int64_t>(size_of(c.dtype));
    return {2.0 * static_cast<double>(m()) * static_cast<double>(n()) * static_cast<double>(k()),
            a_bytes + b.bytes() + bytes_of(bias) + (accumulate ? c_bytes : 0),
            c_bytes,
            m(),
            n(),
            k(),
            trans_a   ? Variant::transposed_a
            : trans_b ? Variant::transposed_b
                      : Variant::none};
  }
  template <class F>
  void visit(F&& f) const {
    f(a, Access::read), f(b, Access::read), f(bias, Access::read);
    f(c, accumulate || padded ? Access::read_write : Access::write);  // padding stays
  }
};

// dbias[F] (+)= sum over rows of dout[n,F]. dbias: gradient type (f32; f64 for f64).
struct BiasBackward {
  static constexpr const char* kName = "bias_backward";
  TensorView dout, dbias;
  bool accumulate = false;

  void validate() const {
    require(dbias.count() == dout.columns(), kName, "dbias has one element per column of dout");
  }
  Cost cost() const {
    return streaming_cost(*this, static_cast<double>(dout.count()), dout.rows(), dout.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(dout, Access::read), f(dbias, accumulate ? Access::read_write : Access::write);
  }
};

}  // namespace zl
