#include "backends/cpu/ops/gemm_rows.h"

#include <algorithm>
#include <cstdint>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"

namespace zl::cpu {
namespace {

constexpr int kWide = kLanes<float>;
constexpr int kSums = 4;  // of a row, side by side
constexpr std::int64_t kStep = kSums * kWide;
// Bytes between a read and what is asked for beside it: the processor's own prefetch stops where a
// page ends.
constexpr std::int64_t kAhead = 4096;
// A Zen 3, with its vectors of 32 bytes, generates in fp32 a tenth faster without asking; its bf16
// is as much slower then. On wider ones fp32 was not tried without.
template <class T>
constexpr bool kAsksAhead = sizeof(T) == 2 || kVectorBytes == 64;

inline float sum_of(Vector<float> values) {
  float lanes[kWide];
  store_vector(lanes, values);
  for (int half = kWide / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// dots[r] = a[r] . b over k elements. One row of b at a time, so that a thread reads its part of
// the matrix from front to end: with several rows side by side a Zen 4 reads 16-bit weights at two
// thirds of that rate.
template <int rows, class T>
void dot_products(const T* a, std::int64_t a_stride, const T* b, std::int64_t k, float* dots) {
  Vector<float> sums[rows][kSums] = {};
  const auto add = [&](std::int64_t at, int sum) {
    const Vector<float> of_b = load_widened<float>(b + at);
    for (int r = 0; r < rows; ++r) {
      sums[r][sum] = multiply_add(load_widened<float>(a + r * a_stride + at), of_b, sums[r][sum]);
    }
  };
  std::int64_t i = 0;
  for (; i + kStep <= k; i += kStep) {
    if constexpr (kAsksAhead<T>) {
      const char* ahead = reinterpret_cast<const char*>(b + i) + kAhead;
      for (std::size_t at = 0; at < kStep * sizeof(T); at += 64) __builtin_prefetch(ahead + at);
    }
    for (int s = 0; s < kSums; ++s) add(i + s * kWide, s);
  }
  for (; i + kWide <= k; i += kWide) add(i, 0);
  for (int r = 0; r < rows; ++r) {
    float sum = sum_of((sums[r][0] + sums[r][1]) + (sums[r][2] + sums[r][3]));
    for (std::int64_t rest = i; rest < k; ++rest) {
      sum += to_float(a[r * a_stride + rest]) * to_float(b[rest]);
    }
    dots[r] = sum;
  }
}

template <int rows, class T>
void columns(const Gemm& op, std::int64_t first, std::int64_t last) {
  const T* a = op.a.as<const T>();
  const T* b = op.b.as<const T>();
  const T* bias = op.bias.empty() ? nullptr : op.bias.as<const T>();
  const std::int64_t k = op.k(), stride = op.b.columns();
  float dots[rows];
  for (std::int64_t column = first; column < last; ++column) {
    dot_products<rows>(a, op.a.columns(), b + column * stride, k, dots);
    for (int r = 0; r < rows; ++r) {
      const float value = bias == nullptr ? dots[r] : dots[r] + to_float(bias[column]);
      const std::int64_t at = r * op.c.columns() + column;
      if (op.c.dtype == DType::f32) {
        op.c.as<float>()[at] = value;
      } else {
        op.c.as<T>()[at] = from_float<T>(value);
      }
    }
  }
}

template <class T>
void run(const Gemm& op, const ExecContext& context) {
  constexpr std::int64_t kElements = 1 << 15;  // of b, for a thread to be worth its start
  parallel_for(context, op.n(), kElements / (op.k() + 1) + 1,
               [&](std::int64_t first, std::int64_t last) {
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
