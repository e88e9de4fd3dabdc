// MLP activations, in runs of eight elements.
#include <math.h>

#include <numbers>

#include "backends/cuda/kernel/runs.h"
#include "core/ops/activation.h"

namespace zl::cuda {
namespace {

template <class A>
struct ValueAndSlope {
  A value, slope;
};

__device__ __forceinline__ float exponential(float x) { return ::expf(x); }
__device__ __forceinline__ double exponential(double x) { return ::exp(x); }
__device__ __forceinline__ float error_function_tail(float x) { return ::erfcf(x); }
__device__ __forceinline__ double error_function_tail(double x) { return ::erfc(x); }
__device__ __forceinline__ float hyperbolic_tangent(float x) { return ::tanhf(x); }
__device__ __forceinline__ double hyperbolic_tangent(double x) { return ::tanh(x); }

// 1 / (1 + e^-x) and its complement, each without cancellation.
template <class A>
__device__ __forceinline__ void logistic(A x, A& value, A& complement) {
  // Past 80 the smaller one is 0 in float anyway; the bound keeps 0 * infinity away.
  const A power = exponential(-(x < A{-80} ? A{-80} : x));
  value = A{1} / (A{1} + power);
  complement = power * value;
}

// x (1 + tanh(u)) / 2 = x logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel).
struct GeluTanh {
  template <class A>
  static __device__ __forceinline__ ValueAndSlope<A> at(A x) {
    constexpr A kScale = static_cast<A>(2.0 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    constexpr A kCubic = static_cast<A>(0.044715);
    A gate, complement;
    logistic(kScale * x * (A{1} + kCubic * x * x), gate, complement);
    return {x * gate, gate + x * gate * complement * kScale * (A{1} + A{3} * kCubic * x * x)};
  }
};

// x Phi(x), Phi the normal distribution function.
struct GeluErf {
  template <class A>
  static __device__ __forceinline__ ValueAndSlope<A> at(A x) {
    constexpr A kDensity = static_cast<A>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    constexpr A kHalfRoot = static_cast<A>(std::numbers::sqrt2 / 2);
    const A phi = A{0.5} * error_function_tail(-x * kHalfRoot);
    return {x * phi, phi + x * exponential(A{-0.5} * x * x) * kDensity};
  }
};

struct Tanh {
  template <class A>
  static __device__ __forceinline__ ValueAndSlope<A> at(A x) {
    A gate, complement;
    logistic(A{2} * x, gate, complement);
    return {hyperbolic_tangent(x), A{4} * gate * complement};
  }
};

struct Silu {
  template <class A>
  static __device__ __forceinline__ ValueAndSlope<A> at(A x) {
    A gate, complement;
    logistic(x, gate, complement);
    return {x * gate, gate * (A{1} + x * complement)};
  }
};

template <class Function, class T>
struct PlainForward {
  const T* x;
  T* y;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    Math<T> values[kRun];
    load_run(x + first, length, packed, values);
    for (int i = 0; i < kRun; ++i) values[i] = Function::at(values[i]).value;
    store_run(y + first, length, packed, values);
  }
};

// dx may be x or dy: a run is read before it is written.
template <class Function, class T>
struct PlainBackward {
  const T *x, *dy;
  T* dx;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    Math<T> values[kRun], gradients[kRun];
    load_run(x + first, length, packed, values);
    load_run(dy + first, length, packed, gradients);
    for (int i = 0; i < kRun; ++i) values[i] = gradients[i] * Function::at(values[i]).slope;
    store_run(dx + first, length, packed, values);
  }
};

// Rows of gate then up, `width` each; a run never crosses the end of a row when `width` is a
// multiple of kRun, else elements go one by one.
template <class Function, class T>
struct GatedForward {
  const T* x;
  T* y;
  std::int64_t width;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    if (!packed) {
      for (std::int64_t i = first; i < first + length; ++i) {
        const T* gate = x + 2 * (i / width) * width + i % width;
        y[i] = store_value<T>(Function::at(load_value(gate[0])).value * load_value(gate[width]));
      }
      return;
    }
    const T* gate = x + 2 * (first / width) * width + first % width;
    Math<T> gates[kRun], ups[kRun];
    load_run(gate, length, true, gates);
    load_run(gate + width, length, true, ups);
    for (int i = 0; i < kRun; ++i) gates[i] = Function::at(gates[i]).value * ups[i];
    store_run(y + first, length, true, gates);
  }
};

template <class Function, class T>
struct GatedBackward {
  const T *x, *dy;
  T* dx;
  std::int64_t width;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    using A = Math<T>;
    if (!packed) {
      for (std::int64_t i = first; i < first + length; ++i) {
        const std::int64_t at = 2 * (i / width) * width + i % width;
        const ValueAndSlope<A> gated = Function::at(load_value(x[at]));
        const A up = load_value(x[at + width]), d = load_value(dy[i]);
        dx[at] = store_value<T>(d * up * gated.slope);
        dx[at + width] = store_value<T>(d * gated.value);
      }
      return;
    }
    const std::int64_t at = 2 * (first / width) * width + first % width;
    for (int i = 0; i < kRun; i += kPack<T>) {  // a pack at a time: fewer registers
      Packed<T> gates = load_packed(x + at + i), ups = load_packed(x + at + width + i);
      const Packed<T> gradients = load_packed(dy + first + i);
#pragma unroll
      for (int j = 0; j < kPack<T>; ++j) {
        const ValueAndSlope<A> gated = Function::at(load_value(gates.at[j]));
        const A up = load_value(ups.at[j]), d = load_value(gradients.at[j]);
        gates.at[j] = store_value<T>(d * up * gated.slope);
        ups.at[j] = store_value<T>(d * gated.value);
      }
      store_packed(dx + at + i, gates);
      store_packed(dx + at + width + i, ups);
    }
  }
};

template <class Function, class T>
void forward(const ActivationForward& op, const ExecContext& context) {
  launch_runs(
      context, op.y.count(),
      PlainForward<Function, T>{op.x.as<T>(), op.y.as<T>(), aligned_16(op.x.data, op.y.data)});
}

template <class Function, class T>
void backward(const ActivationBackward& op, const ExecContext& context) {
  launch_runs(context, op.dx.count(),
              PlainBackward<Function, T>{op.x.as<T>(), op.dy.as<T>(), op.dx.as<T>(),
                                         aligned_16(op.x.data, op.dy.data, op.dx.data)});
}

template <class Function, class T>
void gated_forward(const ActivationForward& op, const ExecContext& context) {
  const std::int64_t width = op.y.columns();
  launch_runs(context, op.y.count(),
              GatedForward<Function, T>{op.x.as<T>(), op.y.as<T>(), width,
                                        width % kRun == 0 && aligned_16(op.x.data, op.y.data)});
}

template <class Function, class T>
void gated_backward(const ActivationBackward& op, const ExecContext& context) {
  const std::int64_t width = op.dy.columns();
  const bool packed = width % kRun == 0 && aligned_16(op.x.data, op.dy.data, op.dx.data);
  launch_runs(
      context, op.dy.count(),
      GatedBackward<Function, T>{op.x.as<T>(), op.dy.as<T>(), op.dx.as<T>(), width, packed});
}

}  // namespace

void execute(const ActivationForward& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    switch (op.kind) {
      case ActivationKind::gelu_tanh:
        return forward<GeluTanh, T>(op, context);
      case ActivationKind::gelu_erf:
        return forward<GeluErf, T>(op, context);
      case ActivationKind::swiglu:
        return gated_forward<Silu, T>(op, context);
      case ActivationKind::geglu_tanh:
        return gated_forward<GeluTanh, T>(op, context);
      case ActivationKind::tanh:
        return forward<Tanh, T>(op, context);
    }
  });
}

void execute(const ActivationBackward& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    switch (op.kind) {
      case ActivationKind::gelu_tanh:
        return backward<GeluTanh, T>(op, context);
      case ActivationKind::gelu_erf:
        return backward<GeluErf, T>(op, context);
      case ActivationKind::swiglu:
        return gated_backward<Silu, T>(op, context);
      case ActivationKind::geglu_tanh:
        return gated_backward<GeluTanh, T>(op, context);
      case ActivationKind::tanh:
        return backward<Tanh, T>(op, context);
    }
  });
}

}  // namespace zl::cuda
