#include "backends/cpu/ops/gemm_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/ops/vector.h"
#include "core/base/dtype.h"

namespace zl::cpu {
namespace {

constexpr int kWide = kLanes<float>;
constexpr int kTogether = 4;  // rows of b

inline Vector<float> load_wide(const float* from) { return load_vector<float>(from); }

// bf16 is the upper half of fp32.
inline Vector<float> load_wide(const bfloat16* from) {
  typedef std::uint16_t Halves __attribute__((vector_size(kVectorBytes / 2)));
  typedef std::uint32_t Words __attribute__((vector_size(kVectorBytes)));
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words words = __builtin_convertvector(halves, Words) << 16;
  Vector<float> values;
  std::memcpy(&values, &words, sizeof values);
  return values;
}

inline float sum_of(Vector<float> values) {
  float sum = 0;
  for (int i = 0; i < kWide; ++i) sum += values[i];
  return sum;
}

// dots[r][j] = a[r] . b[j] over k elements, for `count` rows of b that lie `stride` apart.
template <int rows, int count, class T>
void dot_products(const T* a, std::int64_t a_stride, const T* b, std::int64_t stride,
                  std::int64_t k, float (*dots)[kTogether]) {
  Vector<float> sums[rows][count] = {};
  std::int64_t i = 0;
  for (; i + kWide <= k; i += kWide) {
    Vector<float> of_b[count];
    for (int j = 0; j < count; ++j) of_b[j] = load_wide(b + j * stride + i);
    // The rows are too short for the processor to see where they lead.
    for (int j = 0; j < count; ++j) __builtin_prefetch(b + (j + count) * stride + i);
    for (int r = 0; r < rows; ++r) {
      const Vector<float> of_a = load_wide(a + r * a_stride + i);
      for (int j = 0; j < count; ++j) sums[r][j] = multiply_add(of_a, of_b[j], sums[r][j]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < count; ++j) {
      float sum = sum_of(sums[r][j]);
      for (std::int64_t rest = i; rest < k; ++rest) {
        sum += to_float(a[r * a_stride + rest]) * to_float(b[j * stride + rest]);
      }
      dots[r][j] = sum;
    }
  }
}

template <int rows, class T>
void columns(const Gemm& op, std::int64_t first, std::int64_t last) {
  const T* a = op.a.as<const T>();
  const T* b = op.b.as<const T>();
  const T* bias = op.bias.empty() ? nullptr : op.bias.as<const T>();
  const std::int64_t k = op.k(), stride = op.b.columns();
  const auto put = [&](int row, std::int64_t column, float value) {
    if (bias != nullptr) value += to_float(bias[column]);
    const std::int64_t at = row * op.c.columns() + column;
    if (op.c.dtype == DType::f32) {
      op.c.as<float>()[at] = value;
    } else {
      op.c.as<T>()[at] = from_float<T>(value);
    }
  };
  float dots[rows][kTogether];
  for (std::int64_t column = first; column < last;) {
    const bool all = column + kTogether <= last;
    if (all) {
      dot_products<rows, kTogether>(a, op.a.columns(), b + column * stride, stride, k, dots);
    } else {
      dot_products<rows, 1>(a, op.a.columns(), b + column * stride, stride, k, dots);
    }
    const int count = all ? kTogether : 1;
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < count; ++j) put(r, column + j, dots[r][j]);
    }
    column += count;
  }
}

template <class T>
void run(const Gemm& op, const ExecContext& context) {
  constexpr std::int64_t kElements = 1 << 15;  // of b, for a thread to be worth its start
  // Threads share groups of columns: which ones are summed side by side, and so their bits, does
  // not depend on their number.
  const std::int64_t groups = (op.n() + kTogether - 1) / kTogether;
  const std::int64_t grain = kElements / (kTogether * op.k() + 1) + 1;
  parallel_for(context, groups, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kTogether, last = std::min(op.n(), end * kTogether);
    switch (op.m()) {
      case 1:
        return columns<1, T>(op, first, last);
      case 2:
        return columns<2, T>(op, first, last);
      case 3:
        return columns<3, T>(op, first, last);
      default:
        return columns<4, T>(op, first, last);
    }
  });
}

}  // namespace

bool is_of_few_rows(const Gemm& op) {
  return op.trans_b && !op.trans_a && !op.accumulate && op.m() <= kFewRows &&
         (op.a.dtype == DType::f32 || op.a.dtype == DType::bf16);
}

void rows_gemm(const Gemm& op, const ExecContext& context) {
  if (op.a.dtype == DType::f32) {
    run<float>(op, context);
  } else {
    run<bfloat16>(op, context);
  }
}

}  // namespace zl::cpu
