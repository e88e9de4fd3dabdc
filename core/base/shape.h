// The shape of a tensor: up to four dimensions, row-major, held inline.
// Threads: value type.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/base/error.h"

namespace zl {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    for (const std::int64_t dim : dims) {
      if (rank_ == kMaxRank) throw Error(ErrorCode::failed, "a shape has at most 4 dimensions");
      dims_[rank_++] = dim;
    }
  }

  constexpr int rank() const { return rank_; }
  // Negative axes count from the last; an axis that is not there has 0 elements.
  constexpr std::int64_t operator[](int axis) const {
    const int index = axis < 0 ? rank_ + axis : axis;
    return index < 0 || index >= rank_ ? 0 : dims_[index];
  }
  // Number of elements; 1 for rank 0 would hide empty views, so rank 0 counts 0.
  constexpr std::int64_t count() const {
    if (rank_ == 0) return 0;
    std::int64_t product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= dims_[axis];
    return product;
  }
  constexpr bool operator==(const Shape&) const = default;

  std::string text() const {
    std::string out = "[";
    for (int axis = 0; axis < rank_; ++axis) {
      out += (axis ? "," : "") + std::to_string((*this)[axis]);
    }
    return out + "]";
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace zl
