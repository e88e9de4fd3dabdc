// Shapes beyond the conformance table, against the CPU backend: rows as wide as a large model's (a
// team of one warp up to a whole block, and longer), thousands of tokens of few kinds, a
// vocabulary of GPT-2's size.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/ops/ops.h"
#include "core/ops/embedding.h"
#include "core/ops/loss.h"
#include "core/ops/norm.h"
#include "tests/conformance/workspace.h"

namespace zl::test {
namespace {

double tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 0x1p-7;
}

// All outputs of the harnesses are the CPU's up to rounding, and equal among the harnesses.
template <class T>
void expect_near_cpu(Workspace& w, const T& op) {
  T on_cpu = op;
  Op placed = op;
  std::vector<Operand> operands = operands_of(op);
  std::vector<TensorView> before, want;
  for (const Operand& operand : operands) {
    before.push_back(w.copy(operand.view));
    want.push_back(w.copy(operand.view));
  }
  remap(placed, [&](const TensorView& view) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].view.data == view.data) return want[i].reshaped(view.shape);
    }
    return view;
  });
  on_cpu = std::get<T>(placed);
  cpu::execute(on_cpu, cpu::ExecContext{1});
  for (const auto& harness : make_harnesses()) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      for (std::int64_t j = 0; j < before[i].count(); ++j) {
        set(operands[i].view, j, get(before[i], j));
      }
    }
    harness->run(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      double square = 0;
      for (std::int64_t j = 0; j < want[i].count(); ++j) square += std::pow(get(want[i], j), 2);
      const double scale = std::sqrt(square / static_cast<double>(want[i].count()));
      for (std::int64_t j = 0; j < want[i].count(); ++j) {
        const double expected = get(want[i], j), got = get(operands[i].view, j);
        ASSERT_LE(std::abs(got - expected),
                  tolerance(want[i].dtype) * (std::abs(expected) + scale + 1e-30))
            << T::kName << ", " << harness->name() << ", operand " << i << ", element " << j << ": "
            << got << " instead of " << expected;
      }
    }
  }
}

DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// In f64 teams of 2, 4, 8 and 16 warps, in bf16 of 1, 1, 2 and 4; the last is not made of packs.
const std::vector<std::int64_t> kWidths = {200, 768, 1536, 3072, 3083};

NormForward norm_of(Workspace& w, DType dtype, std::int64_t rows, std::int64_t width) {
  NormForward op;
  op.x = w.normal(dtype, {rows, width});
  op.add = w.normal(dtype, {rows, width});
  op.sum = w.zeros(dtype, {rows, width});
  op.weight = w.normal(dtype, {width});
  op.bias = w.normal(dtype, {width});
  op.out = w.zeros(dtype, {rows, width});
  op.mean = w.zeros(wide(dtype), {rows});
  op.rstd = w.zeros(wide(dtype), {rows});
  op.dropout = w.dropout(0.5f);
  return op;
}

TEST(RowShapes, NormsOfManyWidths) {
  Workspace w(test_seed());
  for (const DType dtype : {DType::f64, DType::bf16}) {
    for (const std::int64_t width : kWidths) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ", width " + std::to_string(width));
      const NormForward forward = norm_of(w, dtype, 11, width);
      expect_near_cpu(w, forward);
      NormBackward op;
      op.dout = w.normal(dtype, {37, width});
      op.x = w.normal(dtype, {37, width});
      op.weight = forward.weight;
      op.mean = w.normal(wide(dtype), {37}, 0.1);
      op.rstd = w.positive(wide(dtype), {37});
      op.dresidual = w.normal(dtype, {37, width});
      op.dx = op.dresidual;
      op.dweight = w.normal(wide(dtype), {width});
      op.dbias = w.normal(wide(dtype), {width});
      op.accumulate = true;
      expect_near_cpu(w, op);
    }
  }
}

// A mean 10000 times the deviation: squares of differences, not differences of squares.
TEST(RowShapes, LayerNormOfALargeMean) {
  Workspace w(test_seed());
  NormForward op = norm_of(w, DType::f32, 5, 768);
  op.add = op.sum = {};
  double want[5] = {};
  for (std::int64_t r = 0; r < 5; ++r) {
    double mean = 0, square = 0;
    for (std::int64_t c = 0; c < 768; ++c) {
      set(op.x, r * 768 + c, 10000 + get(op.x, r * 768 + c));
      mean += get(op.x, r * 768 + c) / 768;
    }
    for (std::int64_t c = 0; c < 768; ++c) square += std::pow(get(op.x, r * 768 + c) - mean, 2);
    want[r] = 1 / std::sqrt(square / 768 + op.epsilon);
  }
  for (const auto& harness : make_harnesses()) {
    harness->run(op);
    for (std::int64_t r = 0; r < 5; ++r) EXPECT_NEAR(get(op.rstd, r), want[r], 1e-5 * want[r]);
  }
}

// Several sorted tiles, and runs of one token over many chunks.
TEST(RowShapes, EmbeddingBackwardOfManyTokens) {
  Workspace w(test_seed());
  for (const DType dtype : {DType::f64, DType::bf16}) {
    for (const std::int32_t vocab : {1, 40, 9000}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + ", vocab " + std::to_string(vocab));
      const std::int64_t width = dtype == DType::f64 ? 9 : 8;  // columns one by one, and packs
      EmbeddingBackward op;
      op.sequence = 1001;
      op.tokens = w.integers({5005}, 0, vocab - 1);
      op.dout = w.normal(dtype, {5005, width});
      op.dwte = w.normal(wide(dtype), {vocab, width});
      op.dwpe = w.normal(wide(dtype), {1003, width});
      op.dropout = w.dropout(0.5f);
      op.accumulate_wte = vocab == 40;
      expect_near_cpu(w, op);
    }
  }
}

// Ids that are no tokens touch nothing.
TEST(RowShapes, EmbeddingsOfIdsThatAreNoTokens) {
  Workspace w(test_seed());
  const TensorView tokens = w.integers({6}, 0, 6);
  set(tokens, 1, -1);
  set(tokens, 4, 7);
  for (const auto& harness : make_harnesses()) {
    EmbeddingForward forward;
    forward.tokens = tokens;
    forward.wte = w.normal(DType::f32, {7, 8});
    forward.out = w.zeros(DType::f32, {6, 8});
    forward.sequence = 6;
    harness->run(forward);
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(std::isnan(get(forward.out, i * 8)), i == 1 || i == 4) << i;
    }
    EmbeddingBackward backward;
    backward.tokens = tokens;
    backward.dout = w.zeros(DType::f32, {6, 8});
    backward.dwte = w.zeros(DType::f32, {7, 8});
    backward.sequence = 6;
    for (std::int64_t i = 0; i < 48; ++i) set(backward.dout, i, 1);
    harness->run(backward);
    double total = 0;
    for (std::int64_t i = 0; i < 56; ++i) total += get(backward.dwte, i);
    EXPECT_EQ(total, 4 * 8);
  }
}

TEST(RowShapes, CrossEntropyOfALargeVocabulary) {
  Workspace w(test_seed());
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    CrossEntropy op;
    op.logits = w.normal(dtype, {3, 50304}, 3.0);
    op.targets = w.integers({3}, 0, 50256);
    set(op.targets, 1, 50256);
    op.losses = w.zeros(wide(dtype), {3});
    op.vocab = 50257;
    op.grad_scale = 0.25f;
    expect_near_cpu(w, op);
  }
}

// Masked logits count nothing; a NaN or an infinity shows in the loss.
TEST(RowShapes, CrossEntropyOfNonFiniteLogits) {
  Workspace w(test_seed());
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& harness : make_harnesses()) {
    CrossEntropy op;
    op.logits = w.zeros(DType::f32, {3, 16});
    op.targets = w.integers({3}, 0, 0);
    op.losses = w.zeros(DType::f32, {3});
    op.vocab = 16;
    for (std::int64_t i = 8; i < 16; ++i) set(op.logits, i, -infinity);
    set(op.logits, 16 + 5, std::nan(""));
    set(op.logits, 32 + 5, infinity);
    harness->run(op);
    EXPECT_NEAR(get(op.losses, 0), std::log(8.0), 1e-6);
    EXPECT_EQ(get(op.logits, 9), 0);
    EXPECT_FALSE(std::isfinite(get(op.losses, 1)));
    EXPECT_FALSE(std::isfinite(get(op.losses, 2)));
  }
}

}  // namespace
}  // namespace zl::test
