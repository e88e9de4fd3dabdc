#include "backends/cuda/blas.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backends/cuda/cublaslt.h"
#include "core/ops/matmul.h"

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

// A row-major matrix of `rows` x `columns` read in columns; its rows `stride` apart (0: dense).
cublasLtMatrixLayout_t layout(DType dtype, std::int64_t rows, std::int64_t columns,
                              std::int64_t stride = 0) {
  cublasLtMatrixLayout_t made = nullptr;
  check_blas(
      cublaslt().layout_create(&made, data_type(dtype), static_cast<std::uint64_t>(columns),
                               static_cast<std::uint64_t>(rows), stride > 0 ? stride : columns),
      "cublasLtMatrixLayoutCreate");
  return made;
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::bias_gradient:
      return CUBLASLT_EPILOGUE_BGRADB;  // the library's second matrix is a
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool has_aux(Epilogue epilogue) {
  return epilogue == Epilogue::gelu || epilogue == Epilogue::gelu_bias ||
         epilogue == Epilogue::gelu_gradient;
}

cublasLtMatmulDesc_t description_of(const GemmKey& key) {
  const bool wide = key.in == DType::f64;
  cublasLtMatmulDesc_t made = nullptr;
  check_blas(cublaslt().desc_create(&made, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                    wide ? CUDA_R_64F : CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  const auto transpose = [](bool yes) { return yes ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(made, CUBLASLT_MATMUL_DESC_TRANSA, transpose(key.trans_b));
  set(made, CUBLASLT_MATMUL_DESC_TRANSB, transpose(key.trans_a));
  if (key.epilogue == Epilogue::none) return made;
  set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(key.epilogue));
  set(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(key.out));
  if (has_aux(key.epilogue)) {
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(key.out));
    set(made, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, key.n);
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

// The library asks for the pointers before it chooses an algorithm too.
void set_pointers(const GemmDescriptors& d, const Product& product) {
  if (!product.vector.empty()) {
    set(d.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.vector.as<void>());
  }
  if (!product.aux.empty()) {
    set(d.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.aux.as<void>());
  }
}

std::string text_of(const GemmKey& key) {
  return std::to_string(key.m) + "x" + std::to_string(key.n) + "x" + std::to_string(key.k) + " " +
         name_of(key.in) + " to " + name_of(key.out) + (key.trans_a ? ", a transposed" : "") +
         (key.trans_b ? ", b transposed" : "");
}

}  // namespace

void check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorCode::failed, std::string(call) + ": " + cublaslt().status_name(status));
}

std::size_t GemmKeyHash::operator()(const GemmKey& key) const {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&hash](auto value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211ull;
    hash ^= hash >> 29;
  };
  mix(key.m), mix(key.n), mix(key.k), mix(key.in), mix(key.out), mix(key.trans_a);
  mix(key.trans_b), mix(key.accumulate), mix(key.epilogue), mix(key.align_a);
  mix(key.align_b), mix(key.align_c), mix(key.workspace), mix(key.stride_a), mix(key.stride_c);
  return hash;
}

GemmKey key_of(const Product& product, std::int64_t workspace_bytes) {
  const Gemm& op = product.gemm;
  GemmKey key{op.m(),     op.n(),     op.k(),        op.a.dtype,      op.c.dtype,
              op.trans_a, op.trans_b, op.accumulate, product.epilogue};
  key.align_a = alignment_of(op.a.data);
  key.align_b = alignment_of(op.b.data);
  key.align_c = alignment_of(product.result.data);
  key.workspace = workspace_bytes;
  if (op.padded) {
    key.stride_a = op.a.columns();
    key.stride_c = op.c.columns();
  }
  return key;
}

GemmDescriptors::GemmDescriptors(const GemmKey& key)
    : product(description_of(key)),
      first(key.trans_b ? layout(key.in, key.n, key.k) : layout(key.in, key.k, key.n)),
      second(key.trans_a ? layout(key.in, key.k, key.m, key.stride_a)
                         : layout(key.in, key.m, key.k, key.stride_a)),
      result(layout(key.out, key.m, key.n, key.stride_c)),
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

Blas::Plan& Blas::plan(const GemmKey& key, const Product& product) {
  const auto known = plans_.find(key);
  if (known != plans_.end()) {
    set_pointers(known->second->descriptors, product);
    return *known->second;
  }
  const CublasLt& lt = cublaslt();
  if (handle_ == nullptr) check_blas(lt.create(&handle_), "cublasLtCreate");
  auto made = std::make_unique<Plan>(key);
  const GemmDescriptors& d = made->descriptors;
  set_pointers(d, product);
  cublasLtMatmulHeuristicResult_t choice{};
  int found = 0;
  made->status = lt.heuristic(handle_, d.product, d.first, d.second, d.result, d.result,
                              d.preference, 1, &choice, &found);
  if (made->status == CUBLAS_STATUS_SUCCESS && found == 0) {
    made->status = CUBLAS_STATUS_NOT_SUPPORTED;
  }
  made->algorithm = choice.algo;
  return *plans_.emplace(key, std::move(made)).first->second;
}

bool Blas::supports(const Product& product, std::int64_t workspace_bytes) {
  return plan(key_of(product, workspace_bytes), product).status == CUBLAS_STATUS_SUCCESS;
}

void Blas::run(const Product& product, Stream stream, std::byte* workspace,
               std::int64_t workspace_bytes) {
  const Gemm& op = product.gemm;
  const GemmKey key = key_of(product, workspace_bytes);
  Plan& chosen = plan(key, product);
  if (chosen.status != CUBLAS_STATUS_SUCCESS) {
    throw Error(ErrorCode::failed, "cublasLtMatmulAlgoGetHeuristic: " +
                                       std::string(cublaslt().status_name(chosen.status)) +
                                       ", no algorithm for " + text_of(key));
  }
  const GemmDescriptors& d = chosen.descriptors;
  const float one = 1, beta = op.accumulate ? 1 : 0;
  const double wide_one = 1, wide_beta = op.accumulate ? 1 : 0;
  const bool wide = key.in == DType::f64;
  std::byte* const result = product.result.data;
  check_blas(
      cublaslt().matmul(handle_, d.product, wide ? static_cast<const void*>(&wide_one) : &one,
                        op.b.data, d.first, op.a.data, d.second,
                        wide ? static_cast<const void*>(&wide_beta) : &beta, result, d.result,
                        result, d.result, &chosen.algorithm, workspace, key.workspace, stream),
      "cublasLtMatmul");
}

}  // namespace zl::cuda
