// The bias that cuBLASLt does not take (backends/cuda/ops/add_bias.h), against the sum in double.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cuda/ops/add_bias.h"
#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace zl::cuda {
namespace {

template <class T>
double value_of(T stored) {
  if constexpr (sizeof(T) == 8) {
    return stored;
  } else {
    return double{to_float(stored)};
  }
}
template <class T>
T stored(double value) {
  if constexpr (sizeof(T) == 8) {
    return value;
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

template <class C, class B>
void check(std::int64_t rows, std::int64_t columns) {
  std::vector<C> c(static_cast<std::size_t>(rows * columns));
  std::vector<B> bias(static_cast<std::size_t>(columns));
  // Multiples of 1/8 below 16: exact in every type, and so are their sums.
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = stored<C>(static_cast<double>(i % 61) / 8);
  for (std::size_t i = 0; i < bias.size(); ++i)
    bias[i] = stored<B>(static_cast<double>(i % 37) / 8);
  ExecContext context;
  context.multiprocessors = 2;
  add_bias({reinterpret_cast<std::byte*>(c.data()), dtype_of<C>::value, Shape{rows, columns}},
           {reinterpret_cast<std::byte*>(bias.data()), dtype_of<B>::value, Shape{columns}},
           context);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::size_t column = i % static_cast<std::size_t>(columns);
    const double expected = static_cast<double>(i % 61) / 8 + static_cast<double>(column % 37) / 8;
    ASSERT_EQ(value_of(c[i]), expected) << i;
  }
}

TEST(AddBias, AddsToEveryRow) {
  check<float, bfloat16>(3, 5);
  check<float, float16>(77, 131);
  check<float, float>(1, 1);
  check<double, double>(9, 33);
  check<bfloat16, bfloat16>(5, 7);
  check<float, bfloat16>(0, 4);
}

}  // namespace
}  // namespace zl::cuda
