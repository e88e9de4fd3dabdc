// Products cut at widths that cuBLASLt is fast at: what the parts read and write, and that together
// they are the whole.
#include "backends/cuda/aligned_parts.h"

#include <gtest/gtest.h>

#include "core/ops/matmul.h"

namespace zl::cuda {
namespace {

constexpr std::int64_t kVocab = 50257, kWhole = 50256, kRow = 50304, kHidden = 768, kTokens = 640;

std::byte* address(std::uintptr_t value) { return reinterpret_cast<std::byte*>(value); }
TensorView matrix(std::uintptr_t where, std::int64_t rows, std::int64_t columns,
                  DType dtype = DType::bf16) {
  return {address(where), dtype, Shape{rows, columns}};
}

Gemm logits(std::int64_t vocab = kVocab, DType dtype = DType::bf16) {
  return {.a = matrix(0x100000, kTokens, kHidden, dtype),
          .b = matrix(0x200000, vocab, kHidden, dtype),
          .c = matrix(0x300000, kTokens, kRow, dtype),
          .trans_b = true,
          .padded = true};
}
Gemm input_gradient(bool accumulate) {
  return {.a = matrix(0x100000, kTokens, kRow),
          .b = matrix(0x200000, kVocab, kHidden),
          .c = matrix(0x300000, kTokens, kHidden),
          .accumulate = accumulate,
          .padded = true};
}

void expect_alone(const Gemm& gemm) {
  gemm.validate();
  const std::vector<Gemm> parts = aligned_parts(gemm);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].b.data, gemm.b.data);
  EXPECT_EQ(parts[0].n(), gemm.n());
  EXPECT_EQ(parts[0].k(), gemm.k());
}

TEST(AlignedParts, LogitsAreCutInColumns) {
  const std::vector<Gemm> parts = aligned_parts(logits());
  ASSERT_EQ(parts.size(), 2u);
  const Gemm &rest = parts[0], &wide = parts[1];
  rest.validate(), wide.validate();
  EXPECT_EQ(wide.n(), kWhole);
  EXPECT_EQ(wide.b.data, address(0x200000));
  EXPECT_EQ(wide.c.data, address(0x300000));
  EXPECT_EQ(rest.n(), 1);
  EXPECT_EQ(rest.b.data, address(0x200000 + 2 * kWhole * kHidden));
  EXPECT_EQ(rest.c.data, address(0x300000 + 2 * kWhole));
  for (const Gemm& part : parts) {
    EXPECT_EQ(part.a.data, address(0x100000));
    EXPECT_EQ(part.m(), kTokens);
    EXPECT_EQ(part.k(), kHidden);
    EXPECT_EQ(part.c.columns(), kRow);
    EXPECT_FALSE(part.accumulate);
  }
}

TEST(AlignedParts, TheGradientOfTheInputIsCutInTermsAndTheFewComeFirst) {
  for (const bool accumulate : {false, true}) {
    const std::vector<Gemm> parts = aligned_parts(input_gradient(accumulate));
    ASSERT_EQ(parts.size(), 2u);
    const Gemm &rest = parts[0], &wide = parts[1];
    rest.validate(), wide.validate();
    EXPECT_EQ(rest.k(), 1);
    EXPECT_EQ(rest.a.data, address(0x100000 + 2 * kWhole));
    EXPECT_EQ(rest.b.data, address(0x200000 + 2 * kWhole * kHidden));
    EXPECT_EQ(rest.accumulate, accumulate);
    EXPECT_EQ(wide.k(), kWhole);
    EXPECT_EQ(wide.a.data, address(0x100000));
    EXPECT_EQ(wide.b.data, address(0x200000));
    EXPECT_TRUE(wide.accumulate);
    for (const Gemm& part : parts) {
      EXPECT_EQ(part.a.columns(), kRow);
      EXPECT_EQ(part.c.data, address(0x300000));
      EXPECT_EQ(part.n(), kHidden);
    }
  }
}

TEST(AlignedParts, TheGradientOfTheWeightsIsCutInRows) {
  Gemm weights = {.a = matrix(0x100000, kTokens, kRow),
                  .b = matrix(0x200000, kTokens, kHidden),
                  .c = matrix(0x300000, kVocab, kHidden, DType::f32),
                  .trans_a = true,
                  .padded = true};
  weights.accumulate = true;
  const std::vector<Gemm> parts = aligned_parts(weights);
  ASSERT_EQ(parts.size(), 2u);
  const Gemm &rest = parts[0], &wide = parts[1];
  rest.validate(), wide.validate();
  EXPECT_EQ(wide.m(), kWhole);
  EXPECT_EQ(wide.a.data, address(0x100000));
  EXPECT_EQ(wide.c.data, address(0x300000));
  EXPECT_EQ(rest.m(), 1);
  EXPECT_EQ(rest.a.data, address(0x100000 + 2 * kWhole));
  EXPECT_EQ(rest.c.data, address(0x300000 + 4 * kWhole * kHidden));
  for (const Gemm& part : parts) {
    EXPECT_EQ(part.b.data, address(0x200000));
    EXPECT_EQ(part.a.columns(), kRow);
    EXPECT_EQ(part.k(), kTokens);
    EXPECT_TRUE(part.accumulate);
  }
}

TEST(AlignedParts, WhatIsFastAsItIsStaysWhole) {
  expect_alone(logits(50304));
  expect_alone(logits(5));                   // nothing is left of it
  expect_alone(logits(kVocab, DType::f32));  // its kernels ask for no such width
  Gemm dense = logits();
  dense.c.shape = Shape{kTokens, kVocab};
  dense.padded = false;
  expect_alone(dense);
}

}  // namespace
}  // namespace zl::cuda
