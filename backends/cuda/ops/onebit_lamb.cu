// 1-bit LAMB after its warm-up; the CPU's values.
#include <math.h>

#include "backends/cuda/kernel/flat.h"
#include "core/ops/onebit_lamb.h"

namespace zl::cuda {
namespace {

struct UpdateBody {
  Flat param, m, m_last, v, v_fresh, direction, update, ratio;
  float beta1, inverse1, beta2, epsilon, decay;

  explicit UpdateBody(const OnebitLambUpdate& op)
      : param(op.param),
        m(op.m),
        m_last(op.m_last),
        v(op.v),
        v_fresh(op.v_fresh),
        direction(op.direction),
        update(op.update),
        ratio(op.ratio),
        beta1(op.beta1),
        inverse1(1.0f / (1.0f - op.beta1)),
        beta2(op.beta2),
        epsilon(op.epsilon),
        decay(op.weight_decay) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float p[kFlatRun], m1[kFlatRun], before[kFlatRun], v1[kFlatRun], fresh[kFlatRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    m_last.load(first, length, before);
    v.load(first, length, v1);
    v_fresh.load(first, length, fresh);
    float way[kFlatRun], change[kFlatRun], quotient[kFlatRun];
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      const float g = ::fmaf(-beta1, before[i], m1[i]) * inverse1;
      fresh[i] = ::fmaf(1.0f - beta2, g * g, beta2 * fresh[i]);
      const float d = ::sqrtf(v1[i]) + epsilon;
      way[i] = m1[i] / d;
      change[i] = ::fmaf(decay, p[i], way[i]);
      quotient[i] = d / (::sqrtf(fresh[i]) + epsilon);
    }
    m_last.store(first, length, m1);
    v_fresh.store(first, length, fresh);
    direction.store(first, length, way);
    update.store(first, length, change);
    ratio.store(first, length, quotient);
  }
};

__device__ __forceinline__ float held(float value, float low, float high) {
  const float below = value < high ? value : high;
  return below < low ? low : below;
}

__global__ void __launch_bounds__(32)
    trust_of(const float* largest_ratio, const double* direction, const double* update,
             const float* frozen, float* last, float* trust, float factor_min, float factor_max,
             float threshold) {
  if (threadIdx.x != 0) return;
  const double whole = ::sqrt(update[0] + update[1]);
  double share = 1.0;
  if (whole > 0) {
    const double part = ::sqrt(direction[0] + direction[1]) / whole;
    share = part < 1.0 ? part : 1.0;
  }
  auto factor = static_cast<float>(static_cast<double>(*largest_ratio) * share + (1.0 - share));
  factor = held(factor, factor_min, factor_max);
  factor = held(factor, *last * (1.0f - threshold), *last * (1.0f + threshold));
  *last = factor;
  *trust = *frozen * factor;
}

template <class C>
struct ScaledBody {
  Flat param, update;
  Copy<C> copy;
  const float* scale;
  float lr;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const float step = -lr * *scale;
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

void execute(const OnebitLambUpdate& op, const ExecContext& context) {
  launch_runs<kFlatRun>(context, op.param.count(), UpdateBody(op));
}

void execute(const OnebitLambTrust& op, const ExecContext& context) {
  launch(context.stream, {1, 1, 32, 0}, trust_of, op.largest_ratio.as<float>(),
         op.direction_square.as<double>(), op.update_square.as<double>(), op.frozen.as<float>(),
         op.last.as<float>(), op.trust.as<float>(), op.factor_min, op.factor_max, op.threshold);
}

void execute(const ScaledStep& op, const ExecContext& context) {
  with_float_type(copy_type(op.copy), op.kName, [&](auto c) {
    using C = decltype(c);
    launch_runs<kFlatRun>(context, op.param.count(),
                          ScaledBody<C>{Flat(op.param), Flat(op.update), Copy<C>(op.copy),
                                        op.scale.as<float>(), op.lr});
  });
}

}  // namespace zl::cuda
