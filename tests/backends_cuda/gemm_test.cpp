// What cuBLASLt is told, checked without a GPU: its descriptors need the library only.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backends/cuda/blas.h"
#include "backends/cuda/cublaslt.h"
#include "core/ops/matmul.h"

namespace zl::cuda {
namespace {

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

Gemm gemm(DType in, DType out, std::int64_t m, std::int64_t n, std::int64_t k) {
  Gemm op;
  op.a = {at(0x10000), in, Shape{m, k}};
  op.b = {at(0x20000), in, Shape{k, n}};
  op.c = {at(0x30000), out, Shape{m, n}};
  return op;
}

TEST(GemmKey, HoldsWhatDecidesTheAlgorithm) {
  const Gemm op = gemm(DType::bf16, DType::bf16, 3, 5, 7);
  const GemmKey key = key_of(product_of(op), 1 << 20);
  EXPECT_EQ(key.m, 3);
  EXPECT_EQ(key.n, 5);
  EXPECT_EQ(key.k, 7);
  EXPECT_EQ(key.epilogue, Epilogue::none);
  EXPECT_EQ(key, key_of(product_of(op), 1 << 20));
  std::set<std::size_t> hashes{GemmKeyHash{}(key)};
  const auto differs = [&](const Gemm& other, std::int64_t workspace = 1 << 20) {
    const GemmKey changed = key_of(product_of(other), workspace);
    EXPECT_FALSE(changed == key);
    EXPECT_TRUE(hashes.insert(GemmKeyHash{}(changed)).second);
  };
  differs(gemm(DType::bf16, DType::bf16, 4, 5, 7));
  differs(gemm(DType::bf16, DType::bf16, 3, 6, 7));
  differs(gemm(DType::bf16, DType::bf16, 3, 5, 8));
  differs(gemm(DType::f16, DType::f16, 3, 5, 7));
  differs(gemm(DType::bf16, DType::f32, 3, 5, 7));
  differs(op, 2 << 20);
  Gemm adding = op;
  adding.accumulate = true;
  differs(adding);
  Gemm longer = op;
  longer.padded = true;
  differs(longer);
  longer.c.shape = Shape{3, 6};
  differs(longer);
  longer.a.shape = Shape{3, 8};
  differs(longer);
  Gemm biased = op;
  biased.bias = {at(0x40000), DType::bf16, Shape{5}};
  differs(biased);
}

TEST(GemmKey, AddressesMatterUpToSixteenBytes) {
  Gemm op = gemm(DType::bf16, DType::bf16, 8, 8, 8);
  const GemmKey key = key_of(product_of(op), 0);
  op.a.data = at(0x10010);  // elsewhere, as well aligned: the same algorithm, the same bits
  EXPECT_EQ(key_of(product_of(op), 0), key);
  EXPECT_EQ(key.align_a, 16);
  op.a.data = at(0x10006);
  op.b.data = at(0x20008);
  op.c.data = at(0x30004);
  const GemmKey odd = key_of(product_of(op), 0);
  EXPECT_EQ(odd.align_a, 2);
  EXPECT_EQ(odd.align_b, 8);
  EXPECT_EQ(odd.align_c, 4);
  EXPECT_FALSE(odd == key);
  // Where the epilogue's result goes counts, not where the sums would have gone.
  Product product = product_of(op);
  product.result.data = at(0x50008);
  EXPECT_EQ(key_of(product, 0).align_c, 8);
}

TEST(GemmKey, BiasGoesIntoTheEpilogueWhereTheLibraryTakesIt) {
  const auto epilogue = [](DType in, DType out, DType bias, std::uintptr_t address) {
    Gemm op = gemm(in, out, 4, 8, 4);
    op.bias = {at(address), bias, Shape{8}};
    return key_of(product_of(op), 0).epilogue;
  };
  EXPECT_EQ(epilogue(DType::bf16, DType::bf16, DType::bf16, 0x100), Epilogue::bias);
  EXPECT_EQ(epilogue(DType::f16, DType::f16, DType::f16, 0x100), Epilogue::bias);
  EXPECT_EQ(epilogue(DType::f32, DType::f32, DType::f32, 0x100), Epilogue::bias);
  EXPECT_EQ(epilogue(DType::bf16, DType::f32, DType::bf16, 0x100), Epilogue::none);
  EXPECT_EQ(epilogue(DType::f64, DType::f64, DType::f64, 0x100), Epilogue::none);
  EXPECT_EQ(epilogue(DType::bf16, DType::bf16, DType::bf16, 0x102), Epilogue::none);
}

struct GemmDescriptorsTest : testing::Test {
  void SetUp() override {
    try {
      cublaslt();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  template <class T>
  static T product(const GemmDescriptors& d, cublasLtMatmulDescAttributes_t attribute) {
    T value{};
    check_blas(cublaslt().desc_get(d.product, attribute, &value, sizeof value, nullptr), "get");
    return value;
  }
  template <class T>
  static T of(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute) {
    T value{};
    check_blas(cublaslt().layout_get(layout, attribute, &value, sizeof value, nullptr), "get");
    return value;
  }
  static void expect_layout(cublasLtMatrixLayout_t layout, std::uint64_t rows,
                            std::uint64_t columns) {
    EXPECT_EQ(of<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS), rows);
    EXPECT_EQ(of<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS), columns);
    EXPECT_EQ(of<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD), static_cast<int>(rows));
  }
};

// Column-major c^T[n,m] = op(first)[n,k] op(second)[k,m] must hold for every transpose.
TEST_F(GemmDescriptorsTest, SwapTheOperandsForColumnMajor) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      GemmKey key{3, 5, 7, DType::bf16, DType::bf16, trans_a, trans_b};
      const GemmDescriptors d(key);
      const auto first = product<std::int32_t>(d, CUBLASLT_MATMUL_DESC_TRANSA);
      const auto second = product<std::int32_t>(d, CUBLASLT_MATMUL_DESC_TRANSB);
      EXPECT_EQ(first, trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
      EXPECT_EQ(second, trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
      trans_b ? expect_layout(d.first, 7, 5) : expect_layout(d.first, 5, 7);
      trans_a ? expect_layout(d.second, 3, 7) : expect_layout(d.second, 7, 3);
      expect_layout(d.result, 5, 3);
    }
  }
}

// Logits of GPT-2: 50257 columns in rows of 50304, so that rows begin at multiples of 16 bytes.
TEST_F(GemmDescriptorsTest, PaddedRowsAreLongerThanTheProductIsWide) {
  constexpr std::int64_t kVocab = 50257, kRow = 50304, kHidden = 768, kTokens = 640;
  const auto view = [](std::int64_t rows, std::int64_t columns) {
    return TensorView{at(0x10000), DType::bf16, Shape{rows, columns}};
  };
  const auto descriptors = [](const Gemm& op) {
    op.validate();
    return GemmDescriptors(key_of(product_of(op), 0));
  };
  const TensorView x = view(kTokens, kHidden), w = view(kVocab, kHidden),
                   logits = view(kTokens, kRow);
  const auto stride = [](cublasLtMatrixLayout_t layout) {
    return of<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD);
  };
  const auto columns = [](cublasLtMatrixLayout_t layout) {
    return of<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS);
  };
  const GemmDescriptors forward = descriptors({x, w, logits, {}, false, true, false, true});
  EXPECT_EQ(columns(forward.result), 50257u);
  EXPECT_EQ(stride(forward.result), kRow);
  EXPECT_EQ(stride(forward.first), kHidden);
  const GemmDescriptors weights = descriptors({logits, x, w, {}, true, false, true, true});
  EXPECT_EQ(columns(weights.second), 50257u);
  EXPECT_EQ(stride(weights.second), kRow);
  EXPECT_EQ(stride(weights.result), kHidden);
  const GemmDescriptors inputs = descriptors({logits, w, x, {}, false, false, false, true});
  EXPECT_EQ(columns(inputs.second), 50257u);
  EXPECT_EQ(stride(inputs.second), kRow);
}

TEST_F(GemmDescriptorsTest, SumInTheWidthTheOpPromises) {
  struct Case {
    DType in, out;
    cublasComputeType_t compute;
    cudaDataType_t scale, a, c;
  };
  for (const Case& each :
       {Case{DType::f64, DType::f64, CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
        Case{DType::f32, DType::f32, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
        Case{DType::bf16, DType::bf16, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
        Case{DType::bf16, DType::f32, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
        Case{DType::f16, DType::f32, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F}}) {
    const GemmDescriptors d(GemmKey{4, 4, 4, each.in, each.out});
    EXPECT_EQ(product<std::int32_t>(d, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE), each.compute);
    EXPECT_EQ(product<std::int32_t>(d, CUBLASLT_MATMUL_DESC_SCALE_TYPE), each.scale);
    EXPECT_EQ(of<std::uint32_t>(d.first, CUBLASLT_MATRIX_LAYOUT_TYPE), each.a);
    EXPECT_EQ(of<std::uint32_t>(d.result, CUBLASLT_MATRIX_LAYOUT_TYPE), each.c);
  }
}

TEST_F(GemmDescriptorsTest, CarryEpilogueWorkspaceAndReproducibleReductions) {
  GemmKey key{4, 8, 4, DType::f16, DType::f16};
  EXPECT_EQ(product<std::uint32_t>(GemmDescriptors(key), CUBLASLT_MATMUL_DESC_EPILOGUE),
            CUBLASLT_EPILOGUE_DEFAULT);
  key.epilogue = Epilogue::bias;
  key.workspace = 123456;
  key.align_a = 4;
  key.align_b = 2;
  key.align_c = 8;
  const GemmDescriptors d(key);
  EXPECT_EQ(product<std::uint32_t>(d, CUBLASLT_MATMUL_DESC_EPILOGUE), CUBLASLT_EPILOGUE_BIAS);
  const auto preference = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_blas(cublaslt().preference_get(d.preference, attribute, &value, sizeof value, nullptr),
               "get");
    return value;
  };
  EXPECT_EQ(preference(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{}), 123456u);
  EXPECT_EQ(preference(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{}),
            CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  // The library's first matrix is b.
  EXPECT_EQ(preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{}), 2u);
  EXPECT_EQ(preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t{}), 4u);
  EXPECT_EQ(preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{}), 8u);
  EXPECT_EQ(preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{}), 8u);
}

TEST_F(GemmDescriptorsTest, NameTheEpilogueAndItsOperands) {
  GemmKey key{4, 16, 8, DType::bf16, DType::bf16};
  const auto made = [&](Epilogue epilogue) {
    key.epilogue = epilogue;
    const GemmDescriptors d(key);
    const auto aux_ld = product<std::int64_t>(d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
    EXPECT_EQ(product<std::int32_t>(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_16BF);
    return std::pair(product<std::uint32_t>(d, CUBLASLT_MATMUL_DESC_EPILOGUE), aux_ld);
  };
  using Made = std::pair<std::uint32_t, std::int64_t>;
  EXPECT_EQ(made(Epilogue::bias), Made(CUBLASLT_EPILOGUE_BIAS, 0));
  EXPECT_EQ(made(Epilogue::gelu), Made(CUBLASLT_EPILOGUE_GELU_AUX, 16));
  EXPECT_EQ(made(Epilogue::gelu_bias), Made(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 16));
  EXPECT_EQ(made(Epilogue::gelu_gradient), Made(CUBLASLT_EPILOGUE_DGELU, 16));
  EXPECT_EQ(made(Epilogue::bias_gradient), Made(CUBLASLT_EPILOGUE_BGRADB, 0));
  key.out = DType::f32;
  key.epilogue = Epilogue::bias_gradient;  // a bias gradient has the type of the result
  EXPECT_EQ(product<std::int32_t>(GemmDescriptors(key), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE),
            CUDA_R_32F);
}

TEST_F(GemmDescriptorsTest, AFailingCallIsNamed) {
  try {
    check_blas(cublaslt().desc_create(nullptr, CUBLAS_COMPUTE_32F, CUDA_R_32F), "the call");
    FAIL() << "null was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the call: CUBLAS_STATUS_"), std::string::npos);
  }
}

}  // namespace
}  // namespace zl::cuda
