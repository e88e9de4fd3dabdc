#include "backends/cuda/blas.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backends/cuda/cublaslt.h"

namespace zl::cuda {
namespace {

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw Error(ErrorCode::failed, std::string("gemm: ") + name_of(dtype) + " has no product");
  }
}

std::uint8_t alignment_of(const std::byte* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint8_t>(std::uintptr_t{1} << std::min(4, std::countr_zero(value)));
}

template <class T>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_blas(cublaslt().desc_set(product, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check_blas(cublaslt().preference_set(preference, attribute, &value, sizeof value),
             "cublasLtMatmulPreferenceSetAttribute");
}

// A row-major matrix of `rows` x `columns` read in columns.
cublasLtMatrixLayout_t layout(DType dtype, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_blas(cublaslt().layout_create(&made, data_type(dtype), static_cast<std::uint64_t>(columns),
                                      static_cast<std::uint64_t>(rows), columns),
             "cublasLtMatrixLayoutCreate");
  return made;
}

cublasLtMatmulDesc_t product_of(const GemmKey& key) {
  const bool wide = key.in == DType::f64;
  cublasLtMatmulDesc_t made = nullptr;
  check_blas(cublaslt().desc_create(&made, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                    wide ? CUDA_R_64F : CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  const auto transpose = [](bool yes) { return yes ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, transpose(key.trans_b));
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, transpose(key.trans_a));
  if (key.epilogue == Epilogue::bias) {
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(key.in));
  }
  return made;
}

cublasLtMatmulPreference_t preference_of(const GemmKey& key) {
  cublasLtMatmulPreference_t made = nullptr;
  check_blas(cublaslt().preference_create(&made), "cublasLtMatmulPreferenceCreate");
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(key.workspace));
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{key.align_b});
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t{key.align_a});
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{key.align_c});
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{key.align_c});
  return made;
}

std::string text_of(const GemmKey& key) {
  return std::to_string(key.m) + "x" + std::to_string(key.n) + "x" + std::to_string(key.k) + " " +
         name_of(key.in) + " to " + name_of(key.out) + (key.trans_a ? ", a transposed" : "") +
         (key.trans_b ? ", b transposed" : "");
}

}  // namespace

std::size_t GemmKeyHash::operator()(const GemmKey& key) const {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&hash](auto value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211ull;
    hash ^= hash >> 29;
  };
  mix(key.m), mix(key.n), mix(key.k), mix(key.in), mix(key.out), mix(key.trans_a);
  mix(key.trans_b), mix(key.accumulate), mix(key.epilogue), mix(key.align_a);
  mix(key.align_b), mix(key.align_c), mix(key.workspace);
  return hash;
}

GemmKey key_of(const Gemm& op, std::int64_t workspace_bytes) {
  GemmKey key{op.m(),     op.n(),     op.k(),     op.a.dtype,
              op.c.dtype, op.trans_a, op.trans_b, op.accumulate};
  key.align_a = alignment_of(op.a.data);
  key.align_b = alignment_of(op.b.data);
  key.align_c = alignment_of(op.c.data);
  key.workspace = workspace_bytes;
  const bool fits = !op.bias.empty() && op.bias.dtype == op.c.dtype && op.c.dtype != DType::f64 &&
                    alignment_of(op.bias.data) == 16;
  if (fits) key.epilogue = Epilogue::bias;
  return key;
}

GemmDescriptors::GemmDescriptors(const GemmKey& key)
    : product(product_of(key)),
      first(key.trans_b ? layout(key.in, key.n, key.k) : layout(key.in, key.k, key.n)),
      second(key.trans_a ? layout(key.in, key.k, key.m) : layout(key.in, key.m, key.k)),
      result(layout(key.out, key.m, key.n)),
      preference(preference_of(key)) {}

GemmDescriptors::~GemmDescriptors() {
  const CublasLt& lt = cublaslt();
  lt.preference_destroy(preference);
  for (const cublasLtMatrixLayout_t each : {first, second, result}) lt.layout_destroy(each);
  lt.desc_destroy(product);
}

Blas::~Blas() {
  if (handle_ != nullptr) cublaslt().destroy(handle_);
}

Blas::Plan& Blas::plan(const GemmKey& key) {
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  const CublasLt& lt = cublaslt();
  if (handle_ == nullptr) check_blas(lt.create(&handle_), "cublasLtCreate");
  auto made = std::make_unique<Plan>(key);
  const GemmDescriptors& d = made->descriptors;
  cublasLtMatmulHeuristicResult_t choice{};
  int found = 0;
  const cublasStatus_t status = lt.heuristic(handle_, d.product, d.first, d.second, d.result,
                                             d.result, d.preference, 1, &choice, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    throw Error(ErrorCode::failed,
                "cublasLtMatmulAlgoGetHeuristic: " + std::string(lt.status_name(status)) +
                    ", no algorithm for " + text_of(key));
  }
  made->algorithm = choice.algo;
  return *plans_.emplace(key, std::move(made)).first->second;
}

void Blas::run(const Gemm& op, const GemmKey& key, Stream stream, std::byte* workspace) {
  Plan& chosen = plan(key);
  const GemmDescriptors& d = chosen.descriptors;
  if (key.epilogue == Epilogue::bias) {
    set(d.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(op.bias.data));
  }
  const float one = 1, beta = op.accumulate ? 1 : 0;
  const double wide_one = 1, wide_beta = op.accumulate ? 1 : 0;
  const bool wide = key.in == DType::f64;
  check_blas(cublaslt().matmul(
                 handle_, d.product, wide ? static_cast<const void*>(&wide_one) : &one, op.b.data,
                 d.first, op.a.data, d.second, wide ? static_cast<const void*>(&wide_beta) : &beta,
                 op.c.data, d.result, op.c.data, d.result, &chosen.algorithm, workspace,
                 static_cast<std::size_t>(key.workspace), stream),
             "cublasLtMatmul");
}

}  // namespace zl::cuda
