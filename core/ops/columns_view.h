// Some columns of a matrix. Ownership: none. Threads: values.
#pragma once

#include "core/base/tensor.h"

namespace zl {

// Columns [first, first + width) of a row-major matrix.
struct ColumnsView {
  TensorView matrix;
  std::int64_t first = 0, width = 0;

  std::int64_t stride() const { return matrix.columns(); }
  // The first element of the first row.
  std::byte* data() const {
    return matrix.data + first * static_cast<std::int64_t>(size_of(matrix.dtype));
  }
  std::int64_t bytes() const {
    return matrix.rows() * width * static_cast<std::int64_t>(size_of(matrix.dtype));
  }
  bool is(std::int64_t rows, std::int64_t columns) const {
    return width == columns && first >= 0 && first + width <= stride() && matrix.rows() == rows;
  }
};

}  // namespace zl
