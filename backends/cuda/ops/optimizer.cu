// Optimizer updates: element-wise with explicit fused multiply-adds, so that every result is the
// CPU's, bit for bit, for any split of a flat range.
#include <math.h>

#include "backends/cuda/kernel/dropout.h"
#include "backends/cuda/kernel/flat.h"
#include "core/ops/optimizer.h"

namespace zl::cuda {
namespace {

void require_f32(const TensorView& view, const char* op) {
  require(view.empty() || view.dtype == DType::f32, op, "the optimizer's tensors are f32");
}

// The copy under stochastic rounding: bit by bit what the CPU stores.
struct StochasticCopy {
  bfloat16* data;
  bool packed;
  RngKey key;
  std::uint64_t base;

  explicit StochasticCopy(const AdamStep& op)
      : data(op.copy.as<bfloat16>()),
        packed(aligned_16(op.copy.data)),
        key(op.key),
        base(op.base) {}
  __device__ void store(std::int64_t first, std::int64_t length,
                        const float (&values)[kFlatRun]) const {
    std::uint32_t words[kFlatRun];
    random_run(key, base + static_cast<std::uint64_t>(first), words);
    float rounded[kFlatRun];  // exactly: storing them does not round again
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i)
      rounded[i] = to_float(round_stochastically(values[i], words[i]));
    store_run(data + first, length, packed, rounded);
  }
};

template <class G, class Target>
struct AdamBody {
  Gradient<G> grad;
  Flat param, m, v;
  Target copy;
  GradientScale scale;
  float decay, epsilon, beta1, beta2, inverse_root, shrink, step;
  bool decoupled;

  AdamBody(const AdamStep& op, const Target& target)
      : grad(op.grad),
        param(op.param),
        m(op.m),
        v(op.v),
        copy(target),
        scale(op),
        decay(op.weight_decay),
        epsilon(op.epsilon),
        beta1(op.beta1),
        beta2(op.beta2),
        inverse_root(1.0f / ::sqrtf(op.bias2)),
        shrink(-op.lr * op.weight_decay),
        step(-op.lr / op.bias1),
        decoupled(op.decoupled) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float g[kFlatRun], p[kFlatRun], m1[kFlatRun], v1[kFlatRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    v.load(first, length, v1);
    grad.load(first, length, g);  // last: a conversion waits for its load
    const float factor = scale.get();
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      float gradient = factor * g[i];
      if (!decoupled) gradient = ::fmaf(decay, p[i], gradient);
      m1[i] = ::fmaf(1.0f - beta1, gradient, beta1 * m1[i]);
      v1[i] = ::fmaf(1.0f - beta2, gradient * gradient, beta2 * v1[i]);
      const float d = ::fmaf(::sqrtf(v1[i]), inverse_root, epsilon);
      if (decoupled) p[i] = ::fmaf(p[i], shrink, p[i]);
      p[i] = ::fmaf(m1[i] / d, step, p[i]);
    }
    param.store(first, length, p);
    m.store(first, length, m1);
    v.store(first, length, v1);
    copy.store(first, length, p);
  }
};

template <class G, class C>
struct SgdBody {
  Gradient<G> grad;
  Flat param, buf;
  Copy<C> copy;
  GradientScale scale;
  float decay, momentum, step;
  bool nesterov, first_step;

  explicit SgdBody(const SgdStep& op)
      : grad(op.grad),
        param(op.param),
        buf(op.buf),
        copy(op.copy),
        scale(op),
        decay(op.weight_decay),
        momentum(op.momentum),
        step(-op.lr),
        nesterov(op.nesterov),
        first_step(op.first) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float g[kFlatRun], p[kFlatRun], velocity[kFlatRun] = {};
    param.load(first, length, p);
    const bool has_buf = buf.data != nullptr;
    if (has_buf && !first_step) buf.load(first, length, velocity);
    grad.load(first, length, g);
    const float factor = scale.get();
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      const float gradient = ::fmaf(decay, p[i], factor * g[i]);
      velocity[i] = has_buf ? ::fmaf(momentum, velocity[i], gradient) : gradient;
      const float direction =
          has_buf && nesterov ? ::fmaf(momentum, velocity[i], gradient) : velocity[i];
      p[i] = ::fmaf(step, direction, p[i]);
    }
    if (has_buf) buf.store(first, length, velocity);
    param.store(first, length, p);
    copy.store(first, length, p);
  }
};

template <class G>
struct LambBody {
  Gradient<G> grad;
  Flat param, m, v, update;
  GradientScale scale;
  float decay, epsilon, beta1, beta2, bias1, bias2;

  explicit LambBody(const LambUpdate& op)
      : grad(op.grad),
        param(op.param),
        m(op.m),
        v(op.v),
        update(op.update),
        scale(op),
        decay(op.weight_decay),
        epsilon(op.epsilon),
        beta1(op.beta1),
        beta2(op.beta2),
        bias1(op.bias1),
        bias2(op.bias2) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float g[kFlatRun], p[kFlatRun], m1[kFlatRun], v1[kFlatRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    v.load(first, length, v1);
    grad.load(first, length, g);  // last: a conversion waits for its load
    const float factor = scale.get();
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      const float gradient = factor * g[i];
      m1[i] = ::fmaf(1.0f - beta1, gradient, beta1 * m1[i]);
      v1[i] = ::fmaf(1.0f - beta2, gradient * gradient, beta2 * v1[i]);
      const float ratio = (m1[i] / bias1) / (::sqrtf(v1[i] / bias2) + epsilon);
      p[i] = ::fmaf(decay, p[i], ratio);
    }
    m.store(first, length, m1);
    v.store(first, length, v1);
    update.store(first, length, p);
  }
};

template <class C>
struct LambApplyBody {
  Flat param, update;
  Copy<C> copy;
  const double *param_square, *update_square;
  float lr, min_trust, max_trust;
  float* average;  // null: absent
  float average_beta;

  __device__ float trust_ratio() const {
    const double param_norm = ::sqrt(param_square[0] + param_square[1]);
    const double update_norm = ::sqrt(update_square[0] + update_square[1]);
    if (param_norm == 0 || update_norm == 0) return 1.0f;
    const auto ratio = static_cast<float>(param_norm / update_norm);
    return ratio < min_trust ? min_trust : ratio > max_trust ? max_trust : ratio;
  }

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const float trust = trust_ratio(), step = -lr * trust;
    if (first == 0 && average != nullptr && trust != 1.0f) {
      *average = ::fmaf(1.0f - average_beta, trust, average_beta * *average);
    }
    float p[kFlatRun], u[kFlatRun];
    param.load(first, length, p);
    update.load(first, length, u);
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) p[i] = ::fmaf(step, u[i], p[i]);
    param.store(first, length, p);
    copy.store(first, length, p);
  }
};

}  // namespace

void execute(const AdamStep& op, const ExecContext& context) {
  const auto run = [&](auto g, const auto& target) {
    using Target = std::decay_t<decltype(target)>;
    launch_runs<kFlatRun>(context, op.param.count(), AdamBody<decltype(g), Target>(op, target));
  };
  if (op.stochastic) {
    return with_float_type(op.grad.dtype, op.kName, [&](auto g) { run(g, StochasticCopy(op)); });
  }
  with_two_types(op.grad.dtype, copy_type(op.copy), op.kName,
                 [&](auto g, auto c, auto) { run(g, Copy<decltype(c)>(op.copy)); });
}

void execute(const SgdStep& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.buf}) require_f32(view, op.kName);
  with_two_types(op.grad.dtype, copy_type(op.copy), op.kName, [&](auto g, auto c, auto) {
    launch_runs<kFlatRun>(context, op.param.count(), SgdBody<decltype(g), decltype(c)>(op));
  });
}

void execute(const LambUpdate& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.m, op.v, op.update}) require_f32(view, op.kName);
  with_float_type(op.grad.dtype, op.kName, [&](auto g) {
    launch_runs<kFlatRun>(context, op.param.count(), LambBody<decltype(g)>(op));
  });
}

void execute(const LambApply& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.update}) require_f32(view, op.kName);
  with_float_type(copy_type(op.copy), op.kName, [&](auto c) {
    using C = decltype(c);
    launch_runs<kFlatRun>(
        context, op.param.count(),
        LambApplyBody<C>{Flat(op.param), Flat(op.update), Copy<C>(op.copy),
                         op.param_square.as<double>(), op.update_square.as<double>(), op.lr,
                         op.min_trust, op.max_trust, op.average.as<float>(), op.average_beta});
  });
}

}  // namespace zl::cuda
