// One-bit messages: a vector as one scale and the sign of each element, with error feedback (Seide
// et al. 2014; Tang et al. 2021, "1-bit Adam").
// A packed message of [rows, columns] has rows of ceil(columns / 8) bytes, eight signs a byte, the
// first in the highest bit, 1 for +; bits beyond the last real element are 0. A row is what travels
// to or comes from one rank. `count` real elements lie row by row; the rest is padding, which is
// neither sent nor changed.
#pragma once

#include "core/ops/checks.h"

namespace zl {

constexpr std::int64_t packed_bytes(std::int64_t columns) { return (columns + 7) / 8; }

// scale = sqrt((square[0] + square[1]) / square_count) rounded to f32, q = scale where x >= 0 else
// -scale, packed = signs of q, x -= q: what the message does not say stays in x for the next one.
// x: f32 [rows, columns]; square: f64[2], SquaredSum's form; packed: u8 [rows, ceil(columns / 8)];
// scale: f32[1].
struct SignCompress {
  static constexpr const char* kName = "sign_compress";
  TensorView x, square, packed, scale;
  std::int64_t count = 0, square_count = 1;

  void validate() const {
    require(x.dtype == DType::f32 && scale.dtype == DType::f32, kName, "x and scale are f32");
    require(square.dtype == DType::f64 && square.count() == 2, kName, "square is two f64");
    require(packed.dtype == DType::u8 && packed.count() == x.rows() * packed_bytes(x.columns()),
            kName, "packed has a byte for eight elements of a row");
    require(count >= 0 && count <= x.count() && square_count > 0 && scale.count() == 1, kName,
            "count lies within x, square_count is positive, scale is one element");
  }
  Cost cost() const {
    return streaming_cost(*this, 3.0 * static_cast<double>(x.count()), x.rows(), x.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read_write), f(square, Access::read), f(packed, Access::write);
    f(scale, Access::write);
  }
};

// out[i] += (1 / rows) * (sum over rows r in order of +- scales[r, column]) for i < count: the
// average of the messages that all ranks sent about one chunk, added to what is there.
// packed: u8 [rows, ceil(n / 8)]; scales: f32 [rows, any]; out: f32[n].
struct SignAverage {
  static constexpr const char* kName = "sign_average";
  TensorView packed, scales, out;
  std::int64_t column = 0, count = 0;

  void validate() const {
    require(packed.dtype == DType::u8 && scales.dtype == DType::f32 && out.dtype == DType::f32,
            kName, "packed is u8, scales and out are f32");
    require(packed.columns() == packed_bytes(out.count()) && packed.rows() == scales.rows(), kName,
            "packed has a row for each row of scales, a byte for eight elements of out");
    require(column >= 0 && column < scales.columns() && count >= 0 && count <= out.count(), kName,
            "column lies within scales, count within out");
  }
  Cost cost() const {
    const auto flops = static_cast<double>(out.count() * (packed.rows() + 1));
    return streaming_cost(*this, flops, packed.rows(), out.count());
  }
  template <class F>
  void visit(F&& f) const {
    f(packed, Access::read), f(scales, Access::read), f(out, Access::read_write);
  }
};

// out[r, i] = +- scales[r, column] for the first count elements, 0 beyond: the messages of all
// ranks about their chunks, side by side.
// packed: u8 [rows, ceil(columns / 8)]; scales: f32 [rows, any]; out: f32 [rows, columns].
struct SignUnpack {
  static constexpr const char* kName = "sign_unpack";
  TensorView packed, scales, out;
  std::int64_t column = 0, count = 0;

  void validate() const {
    require(packed.dtype == DType::u8 && scales.dtype == DType::f32 && out.dtype == DType::f32,
            kName, "packed is u8, scales and out are f32");
    require(packed.columns() == packed_bytes(out.columns()) && packed.rows() == out.rows() &&
                scales.rows() == out.rows(),
            kName, "packed, scales and out have the same rows, a byte for eight elements");
    require(column >= 0 && column < scales.columns() && count >= 0 && count <= out.count(), kName,
            "column lies within scales, count within out");
  }
  Cost cost() const {
    return streaming_cost(*this, static_cast<double>(out.count()), out.rows(), out.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(packed, Access::read), f(scales, Access::read), f(out, Access::write);
  }
};

}  // namespace zl
