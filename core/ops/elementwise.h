// Element-wise ops: fill, scaled copy/cast/accumulate, dropout, random initialisation.
#pragma once

#include "core/ops/checks.h"
#include "core/ops/columns_view.h"
#include "core/ops/dropout_spec.h"

namespace zl {

// x = value. Any floating type or i32.
struct Fill {
  static constexpr const char* kName = "fill";
  TensorView x;
  double value = 0;

  void validate() const {}
  Cost cost() const { return streaming_cost(*this, 0, 1, x.count()); }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::write);
  }
};

// y = alpha * x (+ y when accumulate), with conversion between any two floating types: copy, cast,
// scale and accumulate in one op. Arithmetic in f32 (f64 if either is f64). y may alias x when the
// types are equal. factor: absent, or f64[1], which takes the place of alpha.
struct Axpy {
  static constexpr const char* kName = "axpy";
  TensorView x, y;
  double alpha = 1.0;
  bool accumulate = false;
  TensorView factor = {};

  void validate() const {
    require_factor(factor, kName);
    require(x.count() == y.count(), kName, "x and y have one count");
  }
  Cost cost() const { return streaming_cost(*this, static_cast<double>(x.count()), 1, x.count()); }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(y, accumulate ? Access::read_write : Access::write);
    f(factor, Access::read);
  }
};

// y = dropout(x), DropoutSpec's mask; forward and backward alike. y may alias x.
struct Dropout {
  static constexpr const char* kName = "dropout";
  TensorView x, y;
  DropoutSpec spec;

  void validate() const { require(x.count() == y.count(), kName, "x and y have one count"); }
  Cost cost() const {
    return streaming_cost(*this, 2.0 * static_cast<double>(x.count()), 1, x.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(y, Access::write);
  }
};

// x[i] = std * z(base + index(i)), z standard normal by Box-Muller over Philox words: elements 2j
// and 2j+1 of the global index share one pair of uniforms, so any cut of a tensor gives the same
// values:
//   u = (random_bits(key, 2j) + 1) 2^-32, w = random_bits(key, 2j+1) 2^-32, r = sqrt(-2 ln u),
//   z(2j) = r cos(2 pi w), z(2j+1) = r sin(2 pi w), in f64.
// columns > 0: x is part of columns [.., .. + columns) of a matrix with rows of `stride` elements,
// from the `first`-th element of those columns on; base is that of the first column's first row.
struct RandomNormal {
  static constexpr const char* kName = "random_normal";
  TensorView x;
  double std = 1.0;
  RngKey key;
  std::uint64_t base = 0;
  std::int64_t columns = 0, stride = 0, first = 0;

  // Index from base of element i.
  ZL_HOST_DEVICE std::int64_t index(std::int64_t i) const {
    return columns == 0 ? i : (first + i) / columns * stride + (first + i) % columns;
  }
  void validate() const { require(columns <= stride, kName, "columns is at most stride"); }
  Cost cost() const {
    return streaming_cost(*this, 40.0 * static_cast<double>(x.count()), 1, x.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::write);
  }
};

// y[i, j] = x[i, j]: columns of one matrix to columns of another, bit for bit. x and y have one
// shape and type and do not overlap.
struct CopyColumns {
  static constexpr const char* kName = "copy_columns";
  ColumnsView x, y;

  void validate() const {
    require(x.matrix.dtype == y.matrix.dtype, kName, "x and y are of one type");
    require(x.is(y.matrix.rows(), y.width) && y.is(x.matrix.rows(), x.width), kName,
            "x and y have one shape, within their matrices");
  }
  Cost cost() const { return {0, x.bytes(), y.bytes(), x.matrix.rows(), x.width, 1}; }
  template <class F>
  void visit(F&& f) const {
    f(x.matrix, Access::read);
    f(y.matrix, y.width == y.stride() ? Access::write : Access::read_write);  // the rest stays
  }
};

}  // namespace zl
