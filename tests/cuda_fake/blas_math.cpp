// The arithmetic of the fake cuBLASLt: plain loops over column-major matrices.
#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/dtype.h"
#include "tests/cuda_fake/blas_problem.h"

namespace zl::cuda::fake {
namespace {

double load(const void* data, std::uint32_t type, std::int64_t i) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(data)[i];
    case CUDA_R_32F:
      return static_cast<double>(static_cast<const float*>(data)[i]);
    case CUDA_R_16BF:
      return static_cast<double>(to_float(static_cast<const bfloat16*>(data)[i]));
    default:
      return static_cast<double>(to_float(static_cast<const float16*>(data)[i]));
  }
}

void store(void* data, std::uint32_t type, std::int64_t i, double value) {
  switch (type) {
    case CUDA_R_64F:
      static_cast<double*>(data)[i] = value;
      break;
    case CUDA_R_32F:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    case CUDA_R_16BF:
      static_cast<bfloat16*>(data)[i] = to_bfloat16(static_cast<float>(value));
      break;
    default:
      static_cast<float16*>(data)[i] = to_float16(static_cast<float>(value));
  }
}

// op(matrix), its `lines` rows (or columns) one after another, each `length` long.
std::vector<double> lines_of(const void* data, const Layout& layout, bool along_columns,
                             std::int64_t lines, std::int64_t length) {
  std::vector<double> values(static_cast<std::size_t>(lines * length));
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      const std::int64_t at = along_columns ? i * layout.ld + j : j * layout.ld + i;
      values[static_cast<std::size_t>(i * length + j)] = load(data, layout.type, at);
    }
  }
  return values;
}

constexpr double kCubic = 0.044715;
const double kSlope = std::sqrt(2 / std::numbers::pi);

double gelu(double x) { return 0.5 * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x))); }
double gelu_derivative(double x) {
  const double t = std::tanh(kSlope * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
}

// Parts are rounded to the compute type and added in order.
double dot(const double* x, const double* y, std::int64_t length, std::int64_t parts, bool wide) {
  double sum = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t end = length * (part + 1) / parts;
    double mine = 0;
    for (std::int64_t i = length * part / parts; i < end; ++i) mine += x[i] * y[i];
    sum = wide ? sum + mine : static_cast<double>(static_cast<float>(sum + mine));
  }
  return sum;
}

void reduce_lines(const Problem& p, const std::vector<double>& lines, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < p.k(); ++j) sum += lines[static_cast<std::size_t>(i * p.k() + j)];
    store(p.operation.bias, p.d.type, i, sum);
  }
}

double apply_epilogue(const Problem& p, double value, std::int64_t row, std::int64_t column) {
  const Operation& op = p.operation;
  if (op.has_bias()) value += load(op.bias, p.d.type, row);
  if (!op.has_aux()) return value;
  const std::int64_t at = column * op.aux_ld + row;
  if (op.epilogue == CUBLASLT_EPILOGUE_DGELU) {
    return value * gelu_derivative(load(op.aux, p.d.type, at));
  }
  store(op.aux, p.d.type, at, value);
  return gelu(value);
}

}  // namespace

void compute(const Problem& p, const Matrices& at, double alpha, double beta,
             const Algorithm& algorithm) {
  const Operation& op = p.operation;
  const auto parts = static_cast<std::int64_t>(algorithm.parts);
  const auto a = lines_of(at.a, p.a, op.trans_a != CUBLAS_OP_N, p.m(), p.k());
  const auto b = lines_of(at.b, p.b, op.trans_b == CUBLAS_OP_N, p.n(), p.k());
  for (std::int64_t j = 0; j < p.n(); ++j) {
    for (std::int64_t i = 0; i < p.m(); ++i) {
      const double sum = dot(a.data() + i * p.k(), b.data() + j * p.k(), p.k(), parts,
                             op.compute == CUBLAS_COMPUTE_64F);
      double value = alpha * sum;
      if (beta != 0) value += beta * load(at.c, p.c.type, j * p.c.ld + i);
      store(at.d, p.d.type, j * p.d.ld + i, apply_epilogue(p, value, i, j));
    }
  }
  if (op.epilogue == CUBLASLT_EPILOGUE_BGRADA) reduce_lines(p, a, p.m());
  if (op.epilogue == CUBLASLT_EPILOGUE_BGRADB) reduce_lines(p, b, p.n());
}

}  // namespace zl::cuda::fake
