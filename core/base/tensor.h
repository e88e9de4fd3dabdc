// A view of a tensor in device memory: address, element type, row-major shape.
// Ownership: none; the Buffer (pool.h) owns the bytes. On the recording device the address is
// a fake one that must never be dereferenced. Threads: value type.
#pragma once

#include <cstddef>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace zl {

struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  bool empty() const { return data == nullptr; }
  std::int64_t count() const { return shape.count(); }
  std::int64_t bytes() const { return count() * static_cast<std::int64_t>(size_of(dtype)); }
  // Rows x last dimension, the form most ops work on.
  std::int64_t columns() const { return shape[-1]; }
  std::int64_t rows() const { return columns() == 0 ? 0 : count() / columns(); }

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }

  // `length` elements from element `offset` of the flattened tensor.
  TensorView flat(std::int64_t offset, std::int64_t length) const {
    return {data + offset * static_cast<std::int64_t>(size_of(dtype)), dtype, Shape{length}};
  }
  TensorView flat() const { return {data, dtype, Shape{count()}}; }
  TensorView reshaped(const Shape& other) const { return {data, dtype, other}; }
  // Rows [first, first + length) of a rank-2 tensor.
  TensorView row_range(std::int64_t first, std::int64_t length) const {
    return {data + first * columns() * static_cast<std::int64_t>(size_of(dtype)), dtype,
            Shape{length, columns()}};
  }
};

}  // namespace zl
