// Conformance cases of eight-bit blocks.
#include <cmath>

#include "core/ops/quantize.h"
#include "tests/conformance/cases.h"

namespace zl::test {
namespace {

const std::vector<DType> kNarrow = {DType::f32, DType::bf16, DType::f16};

struct Blocks {
  std::int64_t rows, columns, block;
};

// Rows shorter than, equal to and longer than blocks and the kernels' buffers (1024 elements).
Blocks blocks(Workspace& w) {
  return {w.pick({1, 2, 5}), w.pick({1, 31, 256, 257, 3000}), w.pick({32, 256, 2048})};
}

TensorView bytes(Workspace& w, const Blocks& b) {
  const TensorView q = w.zeros(DType::u8, {b.rows, b.columns});
  for (std::int64_t i = 0; i < q.count(); ++i) {
    set(q, i, static_cast<double>(w.random()() % 256));
  }
  return q;
}

TensorView scales(Workspace& w, const Blocks& b) {
  return w.positive(DType::f32, {b.rows, blocks_of(b.columns, b.block)}, 0.01);
}

Op make_quantize(Workspace& w, DType dtype, double poison) {
  const Blocks b = blocks(w);
  const TensorView x = w.normal(dtype, {b.rows, b.columns}, w.uniform(0.01f, 10.0f));
  for (std::int64_t i = 0; i < b.columns && w.coin(); ++i) set(x, i, 0);  // a row of zeros
  if (poison != 0) set(x, x.count() - 1, poison);
  return BlockQuantize{x, w.zeros(DType::u8, {b.rows, b.columns}),
                       w.zeros(DType::f32, {b.rows, blocks_of(b.columns, b.block)}), b.block};
}

Op make_sum(Workspace& w, DType dtype, bool accumulate) {
  const Blocks b = blocks(w);
  return BlockSum{bytes(w, b), scales(w, b),          w.normal(dtype, {b.columns}),
                  b.block,     w.uniform(0.1f, 1.0f), accumulate};
}

}  // namespace

std::vector<Case> cases_of(Tag<BlockQuantize>) {
  const auto make = [](double poison) {
    return [=](Workspace& w, DType dtype) { return make_quantize(w, dtype, poison); };
  };
  return {{"block_quantize", kNarrow, make(0)},
          {"block_quantize_infinity", kNarrow, make(-HUGE_VAL)},
          {"block_quantize_nan", kNarrow, make(std::nan(""))}};
}

std::vector<Case> cases_of(Tag<BlockDequantize>) {
  return {{"block_dequantize", kNarrow, [](Workspace& w, DType dtype) -> Op {
             const Blocks b = blocks(w);
             return BlockDequantize{bytes(w, b), scales(w, b), w.zeros(dtype, {b.rows, b.columns}),
                                    b.block};
           }}};
}

std::vector<Case> cases_of(Tag<BlockSum>) {
  const auto make = [](bool accumulate) {
    return [=](Workspace& w, DType dtype) { return make_sum(w, dtype, accumulate); };
  };
  return {{"block_sum", kNarrow, make(false)}, {"block_sum_accumulate", kNarrow, make(true)}};
}

}  // namespace zl::test
