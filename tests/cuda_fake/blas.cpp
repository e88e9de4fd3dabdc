// cuBLASLt without a GPU: what loads the library in the backend (backends/cuda/cublaslt.h) gives
// these functions here. Descriptors hold what was set, products are made of nothing but them and
// the pointers (blas_problem.h), on the stream. An algorithm's workspace is overwritten by it.
#include <cstring>

#include "backends/cuda/cublaslt.h"
#include "core/base/error.h"
#include "tests/cuda_fake/blas_problem.h"
#include "tests/cuda_fake/runtime.h"

struct cublasLtContext {
  int device;
};

namespace zl::cuda {
namespace {

using namespace fake;

// The opaque types are handles to these.
template <class T, class Handle>
T& of(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}
template <class T, class Handle>
cublasStatus_t create(Handle* handle, const T& value) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<Handle>(new T(value));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T, class Handle>
cublasStatus_t destroy(Handle handle) {
  delete reinterpret_cast<T*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

struct Field {
  void* at = nullptr;
  std::size_t bytes = 0;
};
template <class T>
Field field(T& value) {
  return {&value, sizeof value};
}

Field attribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name) {
  auto& op = of<Operation>(handle);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return field(op.compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return field(op.scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return field(op.pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return field(op.trans_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return field(op.trans_b);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return field(op.trans_c);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return field(op.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return field(op.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return field(op.bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return field(op.aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return field(op.aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return field(op.aux_type);
    default:
      return {};
  }
}

Field attribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t name) {
  auto& layout = of<Layout>(handle);
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return field(layout.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return field(layout.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return field(layout.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return field(layout.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return field(layout.ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return field(layout.batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return field(layout.stride);
    default:
      return {};
  }
}

Field attribute(cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t name) {
  auto& preference = of<Preference>(handle);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
      return field(preference.search);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return field(preference.workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return field(preference.reductions);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return field(preference.align_a);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return field(preference.align_b);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return field(preference.align_c);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return field(preference.align_d);
    default:
      return {};
  }
}

template <class Handle, class Name>
cublasStatus_t set(Handle handle, Name name, const void* value, std::size_t bytes) {
  const Field field = attribute(handle, name);
  if (value == nullptr || field.at == nullptr || field.bytes != bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(field.at, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Handle, class Name>
cublasStatus_t get(Handle handle, Name name, void* value, std::size_t bytes, std::size_t* written) {
  const Field field = attribute(handle, name);
  if (value == nullptr || field.at == nullptr || field.bytes != bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(value, field.at, bytes);
  if (written != nullptr) *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

const char* name_of_status(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

cublasStatus_t create_handle(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext{current_device()};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_handle(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t create_operation(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                cudaDataType_t scale) {
  Operation made;
  made.compute = compute;
  made.scale = scale;
  return create(handle, made);
}
cublasStatus_t create_layout(cublasLtMatrixLayout_t* handle, cudaDataType_t type,
                             std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
  Layout made;
  made.type = type;
  made.rows = rows;
  made.columns = columns;
  made.ld = ld;
  return create(handle, made);
}
cublasStatus_t create_preference(cublasLtMatmulPreference_t* handle) {
  return create(handle, Preference{});
}

Problem problem_of(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {of<Operation>(operation), of<Layout>(a), of<Layout>(b), of<Layout>(c), of<Layout>(d)};
}

cublasStatus_t find_algorithm(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                              cublasLtMatmulPreference_t preference, int requested,
                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  *returned = 0;
  if (handle == nullptr || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const Problem problem = problem_of(operation, a, b, c, d);
  if (const auto status = problem.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  const Algorithm chosen = choose(problem, of<Preference>(preference));
  results[0] = {};
  std::memcpy(&results[0].algo, &chosen, sizeof chosen);
  results[0].workspaceSize = chosen.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

double scalar(const void* value, const Problem& problem) {
  if (problem.operation.scale == CUDA_R_64F) return *static_cast<const double*>(value);
  return static_cast<double>(*static_cast<const float*>(value));
}

cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                        std::size_t workspace_bytes, cudaStream_t stream) {
  const Problem problem = problem_of(operation, a_layout, b_layout, c_layout, d_layout);
  if (const auto status = problem.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  if (algorithm == nullptr || handle->device != device_of(stream)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Algorithm chosen;
  std::memcpy(static_cast<void*>(&chosen), algorithm, sizeof chosen);
  const Matrices at{a, b, c, d};
  const auto status = check_call(problem, at, chosen, workspace, workspace_bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (begin() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  count_launch();
  enqueue(stream, [=, with_alpha = scalar(alpha, problem), with_beta = scalar(beta, problem)] {
    std::memset(workspace, 0xff, chosen.workspace);
    compute(problem, at, with_alpha, with_beta, chosen);
  });
  return CUBLAS_STATUS_SUCCESS;
}

CublasLt make_table() {
  CublasLt table{};
  table.get_version = [] { return std::size_t{CUBLAS_VERSION}; };
  table.status_name = name_of_status;
  table.create = create_handle;
  table.destroy = destroy_handle;
  table.desc_create = create_operation;
  table.desc_destroy = destroy<Operation, cublasLtMatmulDesc_t>;
  table.desc_set = set<cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t>;
  table.desc_get = get<cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t>;
  table.layout_create = create_layout;
  table.layout_destroy = destroy<Layout, cublasLtMatrixLayout_t>;
  table.layout_get = get<cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t>;
  table.preference_create = create_preference;
  table.preference_destroy = destroy<Preference, cublasLtMatmulPreference_t>;
  table.preference_set = set<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t>;
  table.preference_get = get<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t>;
  table.heuristic = find_algorithm;
  table.matmul = multiply;
  return table;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt table = make_table();
  return table;
}

}  // namespace zl::cuda
