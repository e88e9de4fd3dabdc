// Optimizer updates and exact reductions. Every result is the same for any split of a flat range
// into sub-ranges and any thread count: updates are element-wise with explicit fused multiply-adds,
// reductions are exact.
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

#include "backends/cpu/ops/blocks.h"
#include "backends/cpu/ops/random_fill.h"
#include "core/ops/optimizer.h"

namespace zl::cpu {
namespace {

void require_f32(const TensorView& view, const char* op) {
  require(view.empty() || view.dtype == DType::f32, op, "the optimizer's tensors are f32");
}

void require_float(const TensorView& view, const char* op) {
  if (!view.empty()) with_float_type(view.dtype, op, [](auto) {});
}

template <bool kDecoupled>
void adam_block(const AdamStep& op, std::int64_t first, std::int64_t count,
                const float* __restrict grad, float* __restrict param, float* __restrict m,
                float* __restrict v) {
  const float scale = gradient_scale(op), decay = op.weight_decay, epsilon = op.epsilon;
  const float beta1 = op.beta1, rest1 = 1.0f - op.beta1;
  const float beta2 = op.beta2, rest2 = 1.0f - op.beta2;
  const float inverse_root = 1.0f / std::sqrt(op.bias2);
  const float shrink = -op.lr * op.weight_decay, step = -op.lr / op.bias1;
  const auto update = [&](std::int64_t i) {
    float p = param[i];
    float g = scale * grad[i];
    if constexpr (!kDecoupled) g = std::fma(decay, p, g);
    const float m_new = std::fma(rest1, g, beta1 * m[i]);
    const float v_new = std::fma(rest2, g * g, beta2 * v[i]);
    const float d = std::fma(std::sqrt(v_new), inverse_root, epsilon);
    if constexpr (kDecoupled) p = std::fma(p, shrink, p);
    m[i] = m_new;
    v[i] = v_new;
    param[i] = std::fma(m_new / d, step, p);
  };
  const Ahead streams[] = {
      {op.param, first}, {op.m, first}, {op.v, first}, {op.grad, first}, {op.copy, first}};
  const std::int64_t whole = count / Ahead::kFetch * Ahead::kFetch;
  for (std::int64_t i = 0; i < whole; i += Ahead::kFetch) {
    for (const Ahead& stream : streams) stream.fetch(i);
    for (std::int64_t j = i; j < i + Ahead::kFetch; ++j) update(j);
  }
  for (std::int64_t i = whole; i < count; ++i) update(i);
}

void sgd_block(const SgdStep& op, std::int64_t count, const float* __restrict grad,
               float* __restrict param, float* __restrict buf) {
  const float scale = gradient_scale(op), decay = op.weight_decay, momentum = op.momentum;
  const float step = -op.lr;
  const bool nesterov = op.nesterov, first = op.first;
  if (buf == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = std::fma(decay, param[i], scale * grad[i]);
      param[i] = std::fma(step, g, param[i]);
    }
    return;
  }
  // On the first step buf holds no value yet.
  if (first) std::fill_n(buf, count, 0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = std::fma(decay, param[i], scale * grad[i]);
    const float velocity = std::fma(momentum, buf[i], g);
    buf[i] = velocity;
    param[i] = std::fma(step, nesterov ? std::fma(momentum, velocity, g) : velocity, param[i]);
  }
}

void lamb_block(const LambUpdate& op, std::int64_t count, const float* __restrict grad,
                const float* __restrict param, float* __restrict m, float* __restrict v,
                float* __restrict update) {
  const float scale = gradient_scale(op), decay = op.weight_decay, epsilon = op.epsilon;
  const float beta1 = op.beta1, rest1 = 1.0f - op.beta1, bias1 = op.bias1;
  const float beta2 = op.beta2, rest2 = 1.0f - op.beta2, bias2 = op.bias2;
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = scale * grad[i];
    m[i] = std::fma(rest1, g, beta1 * m[i]);
    v[i] = std::fma(rest2, g * g, beta2 * v[i]);
    const float ratio = (m[i] / bias1) / (std::sqrt(v[i] / bias2) + epsilon);
    update[i] = std::fma(decay, param[i], ratio);
  }
}

void store_stochastically(const AdamStep& op, std::int64_t first, std::int64_t count,
                          const float* param) {
  static_assert(kBlock <= kRandomBlock);
  std::uint32_t words[kBlock];
  random_words(op.key, op.base + static_cast<std::uint64_t>(first), count, words);
  bfloat16* copy = op.copy.as<bfloat16>() + first;
  for (std::int64_t i = 0; i < count; ++i) copy[i] = round_stochastically(param[i], words[i]);
}

float trust_ratio(const LambApply& op) {
  const double* p = op.param_square.as<const double>();
  const double* u = op.update_square.as<const double>();
  const double param_norm = std::sqrt(p[0] + p[1]), update_norm = std::sqrt(u[0] + u[1]);
  if (param_norm == 0 || update_norm == 0) return 1.0f;
  return std::clamp(static_cast<float>(param_norm / update_norm), op.min_trust, op.max_trust);
}

// Largest bit pattern of |x|: orders as the values do, with inf and NaN above all finite ones.
template <class T, class Bits>
Bits largest_magnitude(const TensorView& x, std::int64_t begin, std::int64_t end) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  const Bits* bits = x.as<const Bits>();
  Bits largest = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    largest = std::max(largest, static_cast<Bits>(bits[i] & kMagnitude));
  }
  return largest;
}

float finite_or_infinity(double value) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (!(value <= std::numeric_limits<float>::max())) return kInfinity;
  const float rounded = static_cast<float>(value);
  // f64 rounds up: the result bounds every element.
  return static_cast<double>(rounded) < value ? std::nextafter(rounded, kInfinity) : rounded;
}

template <class T>
float max_magnitude(const TensorView& x, std::int64_t begin, std::int64_t end) {
  if constexpr (std::is_same_v<T, double>) {
    const auto bits = largest_magnitude<T, std::uint64_t>(x, begin, end);
    return finite_or_infinity(std::bit_cast<double>(bits));
  } else if constexpr (std::is_same_v<T, float>) {
    const auto bits = largest_magnitude<T, std::uint32_t>(x, begin, end);
    return finite_or_infinity(static_cast<double>(std::bit_cast<float>(bits)));
  } else {
    const auto bits = largest_magnitude<T, std::uint16_t>(x, begin, end);
    return finite_or_infinity(static_cast<double>(to_float(T{bits})));
  }
}

// The two rounding levels of SquaredSum: adding and subtracting `coarse` (`fine`) rounds to a
// multiple of q1 (q2).
struct RoundingLevels {
  double coarse = 0, fine = 0;
};

RoundingLevels rounding_levels(float bound, std::int64_t total_count) {
  const double square = static_cast<double>(bound) * static_cast<double>(bound);
  int exponent = 0;
  const double mantissa = std::frexp(square, &exponent);
  const double top = std::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
  const auto count = static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(total_count)));
  const double q1 = count * top * 0x1p-52;
  // Squares are not negative, so q1 * 2^52 keeps them in one binade; remainders have a sign.
  return {count * top, 1.5 * count * q1};
}

struct SplitSum {
  double coarse = 0, fine = 0;
};

template <class A>
SplitSum split_sum(const TensorView& x, const RoundingLevels& levels, std::int64_t begin,
                   std::int64_t end) {
  constexpr std::int64_t kLanes = Ahead::kFetch;
  double coarse[kLanes] = {}, fine[kLanes] = {};
  const double high = levels.coarse, low = levels.fine;
  const auto add = [&](std::int64_t lane, double value) {
    const double square = value * value;
    const double part = (square + high) - high;
    coarse[lane] += part;
    fine[lane] += ((square - part) + low) - low;
  };
  for (std::int64_t first = begin; first < end; first += kBlock) {
    const std::int64_t count = std::min(kBlock, end - first);
    A buffer[kBlock];
    const A* values = load(x, first, count, buffer);
    const Ahead ahead(x, first);
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      ahead.fetch(i);
      for (std::int64_t lane = 0; lane < kLanes; ++lane) add(lane, values[i + lane]);
    }
    for (; i < count; ++i) add(0, values[i]);
  }
  SplitSum sum;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    sum.coarse += coarse[lane];
    sum.fine += fine[lane];
  }
  return sum;
}

}  // namespace

void execute(const AdamStep& op, const ExecContext& context) {
  require_float(op.grad, op.kName);
  require_float(op.copy, op.kName);
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float buffer[kBlock];
    const float* grad = load(op.grad, first, length, buffer);
    float* param = op.param.as<float>() + first;
    float *m = op.m.as<float>() + first, *v = op.v.as<float>() + first;
    if (op.decoupled) {
      adam_block<true>(op, first, length, grad, param, m, v);
    } else {
      adam_block<false>(op, first, length, grad, param, m, v);
    }
    if (op.stochastic) {
      store_stochastically(op, first, length, param);
    } else if (!op.copy.empty()) {
      store(op.copy, first, length, param);
    }
  });
}

void execute(const SgdStep& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.buf}) require_f32(view, op.kName);
  for (const TensorView& view : {op.grad, op.copy}) require_float(view, op.kName);
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float buffer[kBlock];
    const float* grad = load(op.grad, first, length, buffer);
    float* param = op.param.as<float>() + first;
    sgd_block(op, length, grad, param, op.buf.empty() ? nullptr : op.buf.as<float>() + first);
    if (!op.copy.empty()) store(op.copy, first, length, param);
  });
}

void execute(const LambUpdate& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.m, op.v, op.update}) require_f32(view, op.kName);
  require_float(op.grad, op.kName);
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float buffer[kBlock];
    const float* grad = load(op.grad, first, length, buffer);
    lamb_block(op, length, grad, op.param.as<const float>() + first, op.m.as<float>() + first,
               op.v.as<float>() + first, op.update.as<float>() + first);
  });
}

void execute(const LambApply& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.update}) require_f32(view, op.kName);
  require_float(op.copy, op.kName);
  const float trust = trust_ratio(op), step = -op.lr * trust;
  if (!op.average.empty() && trust != 1.0f) {
    float& average = *op.average.as<float>();
    average = std::fma(1.0f - op.average_beta, trust, op.average_beta * average);
  }
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float* __restrict param = op.param.as<float>() + first;
    const float* __restrict update = op.update.as<const float>() + first;
    for (std::int64_t i = 0; i < length; ++i) param[i] = std::fma(step, update[i], param[i]);
    if (!op.copy.empty()) store(op.copy, first, length, param);
  });
}

void execute(const AbsMax& op, const ExecContext& context) {
  float* out = op.out.as<float>();
  float largest = op.accumulate ? finite_or_infinity(std::abs(static_cast<double>(*out))) : 0.0f;
  std::mutex mutex;
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    parallel_for(context, op.x.count(), 8 * kGrain, [&](std::int64_t begin, std::int64_t end) {
      const float part = max_magnitude<decltype(type)>(op.x, begin, end);
      const std::lock_guard lock(mutex);
      largest = std::max(largest, part);
    });
  });
  *out = largest;
}

void execute(const SquaredSum& op, const ExecContext& context) {
  const float bound = *op.bound.as<const float>();
  SplitSum total;
  if (!std::isfinite(bound)) {
    total.coarse = std::numeric_limits<double>::infinity();
  } else if (bound > 0) {
    const RoundingLevels levels = rounding_levels(bound, op.total_count);
    std::mutex mutex;
    const auto add = [&](auto type) {
      parallel_for(context, op.x.count(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        const SplitSum part = split_sum<decltype(type)>(op.x, levels, begin, end);
        const std::lock_guard lock(mutex);  // exact sums: the order of threads does not matter
        total.coarse += part.coarse;
        total.fine += part.fine;
      });
    };
    with_arithmetic(op.kName, add, op.x);
  }
  double* out = op.out.as<double>();
  out[0] = (op.accumulate ? out[0] : 0.0) + total.coarse;
  out[1] = (op.accumulate ? out[1] : 0.0) + total.fine;
}

void execute(const ClipFactor& op, const ExecContext&) {
  const double* parts = op.parts.as<const double>();
  const double sum = parts[0] + parts[1];
  const double norm = std::sqrt(sum / op.gradients) / op.loss_scale;
  *op.sum.as<double>() = sum;
  *op.factor.as<double>() = op.unscale / std::max(1.0, (norm + 1e-6) / op.max_norm);
}

}  // namespace zl::cpu
