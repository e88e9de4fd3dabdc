// A matrix product as the descriptors of cuBLASLt describe it, and whether the library's manual and
// header allow it. Checked, each with its status:
//   shapes     op(A) op(B) fits D, C is like D, leading dimensions of at least the rows, column
//              order, no empty matrix                                            INVALID_VALUE
//   types      the rows of the manual's table of supported types that have A and B in one type of
//              f64, f32, bf16, f16; host pointers to alpha and beta              NOT_SUPPORTED
//   epilogues  those of the backend. A bias, bias gradient or aux matrix has the type of D and is
//              there before an algorithm is asked for; the leading dimension of aux is a multiple
//              of 8, no less than the rows of D; none in f64     NOT_SUPPORTED, INVALID_VALUE
//   a call     matrices, vectors and aux lie on the GPU and are as aligned as the preference, and
//              the pointers set when the algorithm was asked for, said; C is D with the same
//              layout, or apart from it; D apart from A and B (the library does not see that, its
//              results are undefined); the workspace is aligned to 256 bytes and holds what the
//              algorithm needs; the algorithm was found for this problem INVALID_VALUE
// Ownership: values; refers to the caller's matrices. Threads: any.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace zl::cuda::fake {

struct Layout {
  std::uint32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;

  bool operator==(const Layout&) const = default;
  // Elements from the first to the last of one matrix.
  std::int64_t extent() const {
    return ld * (static_cast<std::int64_t>(columns) - 1) + static_cast<std::int64_t>(rows);
  }
  std::int64_t bytes() const;
};

struct Operation {
  std::int32_t compute = CUBLAS_COMPUTE_32F, scale = CUDA_R_32F;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t trans_a = CUBLAS_OP_N, trans_b = CUBLAS_OP_N, trans_c = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;
  std::int32_t bias_type = -1, aux_type = -1;

  bool has_bias() const;       // reads a vector
  bool has_aux() const;        // reads or writes a matrix
  bool writes_vector() const;  // the bias gradient
};

struct Preference {
  std::uint32_t search = CUBLASLT_SEARCH_BEST_FIT;
  std::uint64_t workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t align_a = 256, align_b = 256, align_c = 256, align_d = 256;
};

struct Problem {
  Operation operation;
  Layout a, b, c, d;

  std::int64_t m() const { return static_cast<std::int64_t>(d.rows); }
  std::int64_t n() const { return static_cast<std::int64_t>(d.columns); }
  std::int64_t k() const;
  cublasStatus_t check() const;
  // Of everything but the pointers.
  std::uint64_t signature() const;
};

struct Matrices {
  const void *a, *b, *c;
  void* d;
};

// What the fake library keeps in a cublasLtMatmulAlgo_t. Like the real one's, its bits depend on
// all that was known when it was chosen: sums are made in `parts` parts.
struct Algorithm {
  std::uint64_t signature = 0, workspace = 0;
  std::uint32_t align_a = 0, align_b = 0, align_c = 0, align_d = 0, align_bias = 0, align_aux = 0;
  std::uint64_t parts = 1;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Algorithm choose(const Problem& problem, const Preference& preference);
cublasStatus_t check_call(const Problem& problem, const Matrices& at, const Algorithm& algorithm,
                          const void* workspace, std::size_t workspace_bytes);

// D = epilogue(alpha op(A) op(B) + beta C), in the order of the algorithm's parts, over host
// memory.
void compute(const Problem& problem, const Matrices& at, double alpha, double beta,
             const Algorithm& algorithm);

}  // namespace zl::cuda::fake
