// MLP activations, block by block, with vectorised exponentials.
#include <cmath>
#include <numbers>

#include "backends/cpu/ops/blocks.h"
#include "backends/cpu/ops/fast_math.h"
#include "core/ops/activation.h"

namespace zl::cpu {
namespace {

// The functions below are inlined by force: a call for every element is six times slower, as
// tests/bench/activation_bench.cpp would show.
template <class A>
struct ValueAndSlope {
  A value, slope;
};

// 1 / (1 + e^-x) and its complement, each without cancellation.
template <class A>
[[gnu::always_inline]] inline void logistic(A x, A& value, A& complement) {
  // Past 80 the smaller one is 0 in float anyway; the bound keeps 0 * infinity away.
  const A bounded = x < A{-80} ? A{-80} : x;
  const A power = fast_exp(-bounded);
  value = A{1} / (A{1} + power);
  complement = power * value;
}

// x (1 + tanh(u)) / 2 = x logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks & Gimpel).
struct GeluTanh {
  template <class A>
  [[gnu::always_inline]] static ValueAndSlope<A> at(A x) {
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
  [[gnu::always_inline]] static ValueAndSlope<A> at(A x) {
    constexpr A kDensity = static_cast<A>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    const A bell = fast_exp(A{-0.5} * x * x);
    const A tail = normal_tail(std::abs(x), bell);
    const A phi = x < A{0} ? tail : A{1} - tail;
    return {x * phi, phi + x * bell * kDensity};
  }
};

struct Tanh {
  template <class A>
  [[gnu::always_inline]] static ValueAndSlope<A> at(A x) {
    A gate, complement;
    logistic(A{2} * x, gate, complement);
    return {std::tanh(x), A{4} * gate * complement};
  }
};

struct Silu {
  template <class A>
  [[gnu::always_inline]] static ValueAndSlope<A> at(A x) {
    A gate, complement;
    logistic(x, gate, complement);
    return {x * gate, gate * (A{1} + x * complement)};
  }
};

template <class Function, class T>
void plain_forward(const ActivationForward& op, const ExecContext& context) {
  using A = Arithmetic<T>;
  for_blocks(context, op.y.count(), [&](std::int64_t first, std::int64_t length) {
    const T* __restrict x = op.x.as<const T>() + first;
    T* __restrict y = op.y.as<T>() + first;
    for (std::int64_t i = 0; i < length; ++i) y[i] = narrow<T>(Function::at(widen<A>(x[i])).value);
  });
}

// dx may be x or dy, element by element: no __restrict. Out of line, here and below: inlined in the
// loop over blocks, the loop of one thread was seen to take eight times as long an element, as a
// loop without `ivdep` would.
template <class Function, class T>
[[gnu::noinline]] void plain_slopes(const T* x, const T* dy, T* dx, std::int64_t length) {
  using A = Arithmetic<T>;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < length; ++i) {
    dx[i] = narrow<T>(widen<A>(dy[i]) * Function::at(widen<A>(x[i])).slope);
  }
}

template <class Function, class T>
void plain_backward(const ActivationBackward& op, const ExecContext& context) {
  for_blocks(context, op.dx.count(), [&](std::int64_t first, std::int64_t length) {
    plain_slopes<Function>(op.x.as<const T>() + first, op.dy.as<const T>() + first,
                           op.dx.as<T>() + first, length);
  });
}

// fn(row, first column, length): blocks of the rows of [rows, columns].
template <class F>
void for_row_blocks(const ExecContext& context, std::int64_t rows, std::int64_t columns, F&& fn) {
  const std::int64_t grain = rows_worth_a_thread(columns);
  parallel_for(context, rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t first = 0; first < columns; first += kBlock) {
        fn(row, first, std::min(kBlock, columns - first));
      }
    }
  });
}

template <class Function, class T>
void gated_forward(const ActivationForward& op, const ExecContext& context) {
  using A = Arithmetic<T>;
  const std::int64_t width = op.y.columns();
  const auto block = [&](std::int64_t row, std::int64_t first, std::int64_t length) {
    const T* __restrict gate = op.x.as<const T>() + 2 * row * width + first;
    const T* __restrict up = gate + width;
    T* __restrict y = op.y.as<T>() + row * width + first;
    for (std::int64_t i = 0; i < length; ++i) {
      y[i] = narrow<T>(Function::at(widen<A>(gate[i])).value * widen<A>(up[i]));
    }
  };
  for_row_blocks(context, op.y.rows(), width, block);
}

// gate, dgate: with `width` elements to a row of each half.
template <class Function, class T>
[[gnu::noinline]] void gated_slopes(const T* gate, const T* __restrict dy, T* dgate,
                                    std::int64_t width, std::int64_t length) {
  using A = Arithmetic<T>;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < length; ++i) {
    const auto [value, slope] = Function::at(widen<A>(gate[i]));
    const A up = widen<A>(gate[width + i]), d = widen<A>(dy[i]);
    dgate[i] = narrow<T>(d * up * slope);
    dgate[width + i] = narrow<T>(d * value);
  }
}

template <class Function, class T>
void gated_backward(const ActivationBackward& op, const ExecContext& context) {
  const std::int64_t width = op.dy.columns();
  const auto block = [&](std::int64_t row, std::int64_t first, std::int64_t length) {
    const std::int64_t at = 2 * row * width + first;
    gated_slopes<Function>(op.x.as<const T>() + at, op.dy.as<const T>() + row * width + first,
                           op.dx.as<T>() + at, width, length);
  };
  for_row_blocks(context, op.dy.rows(), width, block);
}

}  // namespace

void execute(const ActivationForward& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    switch (op.kind) {
      case ActivationKind::gelu_tanh:
        return plain_forward<GeluTanh, T>(op, context);
      case ActivationKind::gelu_erf:
        return plain_forward<GeluErf, T>(op, context);
      case ActivationKind::swiglu:
        return gated_forward<Silu, T>(op, context);
      case ActivationKind::geglu_tanh:
        return gated_forward<GeluTanh, T>(op, context);
      case ActivationKind::tanh:
        return plain_forward<Tanh, T>(op, context);
    }
  });
}

void execute(const ActivationBackward& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    switch (op.kind) {
      case ActivationKind::gelu_tanh:
        return plain_backward<GeluTanh, T>(op, context);
      case ActivationKind::gelu_erf:
        return plain_backward<GeluErf, T>(op, context);
      case ActivationKind::swiglu:
        return gated_backward<Silu, T>(op, context);
      case ActivationKind::geglu_tanh:
        return gated_backward<GeluTanh, T>(op, context);
      case ActivationKind::tanh:
        return plain_backward<Tanh, T>(op, context);
    }
  });
}

}  // namespace zl::cpu
