// GEMM as cuBLASLt sees it: a key for what decides the algorithm, the descriptors built from it
// (no device needed), and the algorithms a device has chosen so far.
// Ownership: descriptors and the handle are owned. Threads: one rank's thread.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "backends/cuda/kernel/stream.h"
#include "backends/cuda/product.h"

namespace zl::cuda {

// Throws Error{failed} "<call>: CUBLAS_STATUS_..." unless the call succeeded.
void check_blas(cublasStatus_t status, const char* call);

// Everything the choice of an algorithm may depend on, and nothing that differs between runs of one
// program: with equal keys the results have equal bits. Alignments (of a, b and of the result)
// count up to 16 bytes, so that a weight's place in a larger buffer does not matter; those of an
// epilogue's vector and aux are always 16.
struct GemmKey {
  std::int64_t m = 0, n = 0, k = 0;
  DType in = DType::f32, out = DType::f32;
  bool trans_a = false, trans_b = false, accumulate = false;
  Epilogue epilogue = Epilogue::none;
  std::uint8_t align_a = 16, align_b = 16, align_c = 16;
  std::int64_t workspace = 0;  // bytes
  // Of a and of the result: elements from one row to the next where they are padded, 0 where not.
  std::int64_t stride_a = 0, stride_c = 0;

  bool operator==(const GemmKey&) const = default;
};
struct GemmKeyHash {
  std::size_t operator()(const GemmKey& key) const;
};

GemmKey key_of(const Product& product, std::int64_t workspace_bytes);

// Row-major c = op(a) op(b) is, read in columns, c^T = op(b)^T op(a)^T: cuBLASLt's first matrix is
// b and its second a. Sums in f32 (f64 for f64), never TF32.
struct GemmDescriptors {
  explicit GemmDescriptors(const GemmKey& key);
  ~GemmDescriptors();
  GemmDescriptors(const GemmDescriptors&) = delete;
  GemmDescriptors& operator=(const GemmDescriptors&) = delete;

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  // Split-K parts are added in a fixed order in the type of the sums: the other schemes round
  // parts to 16 bits or add into c.
  cublasLtMatmulPreference_t preference = nullptr;
};

class Blas {
 public:
  ~Blas();
  // Whether the library has an algorithm for it.
  bool supports(const Product& product, std::int64_t workspace_bytes);
  // Enqueues. Throws Error{failed} naming the call, or that no algorithm supports the shape.
  void run(const Product& product, Stream stream, std::byte* workspace,
           std::int64_t workspace_bytes);

 private:
  struct Plan {
    explicit Plan(const GemmKey& key) : descriptors(key) {}
    GemmDescriptors descriptors;
    cublasLtMatmulAlgo_t algorithm{};
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;  // else there is no algorithm
  };
  Plan& plan(const GemmKey& key, const Product& product);

  cublasLtHandle_t handle_ = nullptr;
  std::unordered_map<GemmKey, std::unique_ptr<Plan>, GemmKeyHash> plans_;
};

}  // namespace zl::cuda
