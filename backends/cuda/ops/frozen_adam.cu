// Adam in halves: element-wise with explicit fused multiply-adds; the CPU's values.
#include <math.h>

#include "backends/cuda/kernel/flat.h"
#include "core/ops/frozen_adam.h"

namespace zl::cuda {
namespace {

template <class G>
struct MomentumBody {
  Gradient<G> grad;
  Flat m;
  GradientScale scale;
  float beta;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float m1[kFlatRun], g[kFlatRun];
    m.load(first, length, m1);
    grad.load(first, length, g);
    const float factor = scale.get();
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) m1[i] = ::fmaf(1.0f - beta, factor * g[i], beta * m1[i]);
    m.store(first, length, m1);
  }
};

template <class C>
struct FrozenBody {
  Flat param, m, v;
  Copy<C> copy;
  float epsilon, inverse_root, shrink, step;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float p[kFlatRun], m1[kFlatRun], v1[kFlatRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    v.load(first, length, v1);
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      const float d = ::fmaf(::sqrtf(v1[i]), inverse_root, epsilon);
      p[i] = ::fmaf(p[i], shrink, p[i]);
      p[i] = ::fmaf(m1[i] / d, step, p[i]);
    }
    param.store(first, length, p);
    copy.store(first, length, p);
  }
};

template <class C>
struct LocalBody {
  Flat param, m, v, moved;
  Copy<C> copy;
  float epsilon, decay, step;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float p[kFlatRun], m1[kFlatRun], v1[kFlatRun], way[kFlatRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    v.load(first, length, v1);
    moved.load(first, length, way);
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      const float update = ::fmaf(decay, p[i] + way[i], m1[i] / (::sqrtf(v1[i]) + epsilon));
      way[i] = ::fmaf(step, update, way[i]);
      p[i] += way[i];
    }
    moved.store(first, length, way);
    copy.store(first, length, p);
  }
};

struct DenominatorBody {
  Flat x, v;
  float epsilon;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float x1[kFlatRun], v1[kFlatRun];
    x.load(first, length, x1);
    v.load(first, length, v1);
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) x1[i] *= ::sqrtf(v1[i]) + epsilon;
    x.store(first, length, x1);
  }
};

template <class C>
struct SharedBody {
  Flat param, m, v, moved;
  Copy<C> copy;
  float epsilon, inverse;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float p[kFlatRun], m1[kFlatRun], v1[kFlatRun], way[kFlatRun];
    param.load(first, length, p);
    v.load(first, length, v1);
    moved.load(first, length, way);
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) {
      m1[i] = way[i] * inverse;
      p[i] += way[i] / (::sqrtf(v1[i]) + epsilon);
      way[i] = 0;
    }
    param.store(first, length, p);
    m.store(first, length, m1);
    moved.store(first, length, way);
    copy.store(first, length, p);
  }
};

}  // namespace

void execute(const MomentumStep& op, const ExecContext& context) {
  with_float_type(op.grad.dtype, op.kName, [&](auto g) {
    using G = decltype(g);
    launch_runs<kFlatRun>(
        context, op.m.count(),
        MomentumBody<G>{Gradient<G>(op.grad), Flat(op.m), GradientScale(op), op.beta1});
  });
}

void execute(const FrozenAdamStep& op, const ExecContext& context) {
  with_float_type(copy_type(op.copy), op.kName, [&](auto c) {
    using C = decltype(c);
    launch_runs<kFlatRun>(
        context, op.param.count(),
        FrozenBody<C>{Flat(op.param), Flat(op.m), Flat(op.v), Copy<C>(op.copy), op.epsilon,
                      1.0f / ::sqrtf(op.bias2), -op.lr * op.weight_decay, -op.lr / op.bias1});
  });
}

void execute(const LocalAdamStep& op, const ExecContext& context) {
  with_float_type(op.copy.dtype, op.kName, [&](auto c) {
    using C = decltype(c);
    launch_runs<kFlatRun>(context, op.param.count(),
                          LocalBody<C>{Flat(op.param), Flat(op.m), Flat(op.v), Flat(op.moved),
                                       Copy<C>(op.copy), op.epsilon, op.weight_decay, -op.lr});
  });
}

void execute(const DenominatorScale& op, const ExecContext& context) {
  launch_runs<kFlatRun>(context, op.x.count(), DenominatorBody{Flat(op.x), Flat(op.v), op.epsilon});
}

void execute(const SharedAdamStep& op, const ExecContext& context) {
  with_float_type(op.copy.dtype, op.kName, [&](auto c) {
    using C = decltype(c);
    launch_runs<kFlatRun>(context, op.param.count(),
                          SharedBody<C>{Flat(op.param), Flat(op.m), Flat(op.v), Flat(op.moved),
                                        Copy<C>(op.copy), op.epsilon, -1.0f / op.lr_sum});
  });
}

}  // namespace zl::cuda
