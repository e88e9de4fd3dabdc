// What an op costs: the inputs of every cost model.
#pragma once

#include <cstdint>

namespace zl {

// What an op's time depends on beside its shape.
enum class Variant : std::uint8_t {
  none,
  sparse,        // attention over the blocks of a layout only
  transposed_a,  // a product with the transpose of its first factor
  transposed_b
};

struct Cost {
  double flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  // Shape as the cost models want it: GEMM m, n, k; attention batch*heads, sequence, head size;
  // row-wise ops rows, columns, 1.
  std::int64_t m = 0, n = 0, k = 0;
  Variant variant = Variant::none;
};

enum class Access : std::uint8_t { read, write, read_write };

}  // namespace zl
