#include "tests/cuda_fake/blas_problem.h"

#include <algorithm>
#include <array>
#include <bit>

#include "tests/cuda_fake/fake.h"

namespace zl::cuda::fake {
namespace {

std::int64_t size_of_type(std::uint32_t type) {
  if (type == CUDA_R_64F) return 8;
  return type == CUDA_R_32F ? 4 : 2;
}

// A and B, C and D, by compute and scale type.
bool is_supported(const Problem& p) {
  struct Row {
    std::int32_t compute, scale;
    std::uint32_t factors, result;
  };
  static constexpr std::array<Row, 6> kTable{
      {{CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
       {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
       {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
       {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
       {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
       {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F}}};
  return std::any_of(kTable.begin(), kTable.end(), [&](const Row& row) {
    return row.compute == p.operation.compute && row.scale == p.operation.scale &&
           row.factors == p.a.type && row.factors == p.b.type && row.result == p.d.type;
  });
}

bool is_layout(const Layout& layout) {
  return layout.order == CUBLASLT_ORDER_COL && layout.rows > 0 && layout.columns > 0 &&
         layout.ld >= static_cast<std::int64_t>(layout.rows) && layout.batch == 1;
}

std::uint32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value == 0 ? 256u : std::uint32_t{1} << std::min(8, std::countr_zero(value));
}

bool overlap(const void* a, std::int64_t a_bytes, const void* b, std::int64_t b_bytes) {
  const auto *first = static_cast<const std::byte*>(a), *second = static_cast<const std::byte*>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

cublasStatus_t check_epilogue(const Problem& p) {
  const Operation& op = p.operation;
  if (op.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  if (!op.has_bias() && !op.has_aux() && !op.writes_vector()) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.d.type == CUDA_R_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto is_result_type = [&](std::int32_t type) {
    return type == -1 || static_cast<std::uint32_t>(type) == p.d.type;
  };
  if (op.has_bias() || op.writes_vector()) {
    if (op.bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_result_type(op.bias_type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (op.has_aux()) {
    if (op.aux == nullptr || op.aux_ld % 8 != 0 || op.aux_ld < p.m()) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!is_result_type(op.aux_type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

std::int64_t Layout::bytes() const { return extent() * size_of_type(type); }

bool Operation::has_bias() const {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool Operation::has_aux() const {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_DGELU;
}
bool Operation::writes_vector() const {
  return epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

std::int64_t Problem::k() const {
  return static_cast<std::int64_t>(operation.trans_a == CUBLAS_OP_N ? a.columns : a.rows);
}

cublasStatus_t Problem::check() const {
  for (const Layout* each : {&a, &b, &c, &d}) {
    if (!is_layout(*each)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool plain_a = operation.trans_a == CUBLAS_OP_N, plain_b = operation.trans_b == CUBLAS_OP_N;
  const std::uint64_t rows = plain_a ? a.rows : a.columns, columns = plain_b ? b.columns : b.rows;
  const std::uint64_t depth = plain_b ? b.rows : b.columns;
  const bool fits =
      rows == d.rows && columns == d.columns && depth == static_cast<std::uint64_t>(k());
  const bool is_like = c.rows == d.rows && c.columns == d.columns && c.type == d.type;
  if (!fits || !is_like || operation.trans_c != CUBLAS_OP_N) return CUBLAS_STATUS_INVALID_VALUE;
  if (operation.pointer_mode != CUBLASLT_POINTER_MODE_HOST || !is_supported(*this)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return check_epilogue(*this);
}

std::uint64_t Problem::signature() const {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  const auto mix = [&hash](auto value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 31;
  };
  for (const Layout* each : {&a, &b, &c, &d}) {
    mix(each->type), mix(each->rows), mix(each->columns), mix(each->ld);
  }
  mix(operation.compute), mix(operation.trans_a), mix(operation.trans_b);
  mix(operation.epilogue), mix(operation.aux_ld);
  return hash;
}

Algorithm choose(const Problem& problem, const Preference& preference) {
  Algorithm chosen;
  chosen.signature = problem.signature();
  chosen.align_a = preference.align_a;
  chosen.align_b = preference.align_b;
  chosen.align_c = preference.align_c;
  chosen.align_d = preference.align_d;
  chosen.align_bias = std::min(16u, alignment_of(problem.operation.bias));
  chosen.align_aux = std::min(16u, alignment_of(problem.operation.aux));
  const std::uint64_t seen = chosen.signature ^ (preference.workspace * 31) ^
                             (preference.align_a + 3 * preference.align_b + 7 * preference.align_d);
  const bool splits = (preference.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  chosen.parts = splits ? 1 + seen % 3 : 1;
  chosen.workspace = std::min<std::uint64_t>(preference.workspace, chosen.parts * 4096);
  return chosen;
}

cublasStatus_t check_call(const Problem& p, const Matrices& at, const Algorithm& algorithm,
                          const void* workspace, std::size_t workspace_bytes) {
  const Operation& op = p.operation;
  const auto is_good = [](const void* address, std::int64_t bytes, std::uint32_t alignment) {
    return alignment_of(address) >= alignment && gpu_reaches(address, bytes);
  };
  const std::int64_t element = size_of_type(p.d.type);
  bool good = algorithm.signature == p.signature() &&
              is_good(at.a, p.a.bytes(), algorithm.align_a) &&
              is_good(at.b, p.b.bytes(), algorithm.align_b) &&
              is_good(at.c, p.c.bytes(), algorithm.align_c) &&
              is_good(at.d, p.d.bytes(), algorithm.align_d);
  if (op.has_bias()) good = good && is_good(op.bias, p.m() * element, algorithm.align_bias);
  if (op.writes_vector()) {
    const std::int64_t count = op.epilogue == CUBLASLT_EPILOGUE_BGRADA ? p.m() : p.n();
    good = good && is_good(op.bias, count * element, algorithm.align_bias);
  }
  if (op.has_aux()) {
    const std::int64_t bytes = (op.aux_ld * (p.n() - 1) + p.m()) * element;
    good = good && is_good(op.aux, bytes, algorithm.align_aux);
  }
  good = good && !overlap(at.d, p.d.bytes(), at.a, p.a.bytes()) &&
         !overlap(at.d, p.d.bytes(), at.b, p.b.bytes());
  good = good && (at.c == at.d ? p.c == p.d : !overlap(at.d, p.d.bytes(), at.c, p.c.bytes()));
  good = good && workspace_bytes >= algorithm.workspace &&
         (algorithm.workspace == 0 ||
          is_good(workspace, static_cast<std::int64_t>(algorithm.workspace), 256));
  return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

}  // namespace zl::cuda::fake
