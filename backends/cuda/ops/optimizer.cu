// Optimizer updates and exact reductions. Every result is the same for any split of a flat range:
// updates are element-wise with explicit fused multiply-adds (the CPU's, bit for bit), reductions
// are exact or maxima.
#include <float.h>
#include <math.h>

#include <bit>

#include "backends/cuda/kernel/column_sum.h"
#include "backends/cuda/kernel/reduce.h"
#include "backends/cuda/kernel/runs.h"

namespace zl::cuda {
namespace {

void require_f32(const TensorView& view, const char* op) {
  require(view.empty() || view.dtype == DType::f32, op, "the optimizer's tensors are f32");
}

// A flat f32 tensor, read and written in runs.
struct Flat {
  float* data;
  bool packed;

  explicit Flat(const TensorView& view) : data(view.as<float>()), packed(aligned_16(view.data)) {}
  __device__ void load(std::int64_t first, std::int64_t length, float (&values)[kRun]) const {
    load_run(data + first, length, packed, values);
  }
  __device__ void store(std::int64_t first, std::int64_t length, const float (&values)[kRun]) const {
    store_run(data + first, length, packed, values);
  }
};

// The weights in the compute type; absent when data is null.
template <class C>
struct Copy {
  C* data;
  bool packed;

  explicit Copy(const TensorView& view)
      : data(view.empty() ? nullptr : view.as<C>()), packed(aligned_16(view.data)) {}
  __device__ void store(std::int64_t first, std::int64_t length, const float (&values)[kRun]) const {
    if (data != nullptr) store_run(data + first, length, packed, values);
  }
};

template <class G>
struct Gradient {
  const G* data;
  bool packed;

  explicit Gradient(const TensorView& view) : data(view.as<G>()), packed(aligned_16(view.data)) {}
  __device__ void load(std::int64_t first, std::int64_t length, float (&values)[kRun]) const {
    load_run(data + first, length, packed, values);
  }
};

template <class G, class C>
struct AdamBody {
  Gradient<G> grad;
  Flat param, m, v;
  Copy<C> copy;
  float scale, decay, epsilon, beta1, beta2, inverse_root, shrink, step;
  bool decoupled;

  explicit AdamBody(const AdamStep& op)
      : grad(op.grad),
        param(op.param),
        m(op.m),
        v(op.v),
        copy(op.copy),
        scale(op.grad_scale),
        decay(op.weight_decay),
        epsilon(op.epsilon),
        beta1(op.beta1),
        beta2(op.beta2),
        inverse_root(1.0f / ::sqrtf(op.bias2)),
        shrink(-op.lr * op.weight_decay),
        step(-op.lr / op.bias1),
        decoupled(op.decoupled) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float g[kRun], p[kRun], m1[kRun], v1[kRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    v.load(first, length, v1);
    grad.load(first, length, g);  // last: a conversion waits for its load
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      float gradient = scale * g[i];
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
  float scale, decay, momentum, step;
  bool nesterov, first_step;

  explicit SgdBody(const SgdStep& op)
      : grad(op.grad),
        param(op.param),
        buf(op.buf),
        copy(op.copy),
        scale(op.grad_scale),
        decay(op.weight_decay),
        momentum(op.momentum),
        step(-op.lr),
        nesterov(op.nesterov),
        first_step(op.first) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float g[kRun], p[kRun], velocity[kRun] = {};
    param.load(first, length, p);
    const bool has_buf = buf.data != nullptr;
    if (has_buf && !first_step) buf.load(first, length, velocity);
    grad.load(first, length, g);
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const float gradient = ::fmaf(decay, p[i], scale * g[i]);
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
  float scale, decay, epsilon, beta1, beta2, bias1, bias2;

  explicit LambBody(const LambUpdate& op)
      : grad(op.grad),
        param(op.param),
        m(op.m),
        v(op.v),
        update(op.update),
        scale(op.grad_scale),
        decay(op.weight_decay),
        epsilon(op.epsilon),
        beta1(op.beta1),
        beta2(op.beta2),
        bias1(op.bias1),
        bias2(op.bias2) {}

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    float g[kRun], p[kRun], m1[kRun], v1[kRun];
    param.load(first, length, p);
    m.load(first, length, m1);
    v.load(first, length, v1);
    grad.load(first, length, g);  // last: a conversion waits for its load
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const float gradient = scale * g[i];
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

  __device__ float trust_ratio() const {
    const double param_norm = ::sqrt(param_square[0] + param_square[1]);
    const double update_norm = ::sqrt(update_square[0] + update_square[1]);
    if (param_norm == 0 || update_norm == 0) return 1.0f;
    const auto ratio = static_cast<float>(param_norm / update_norm);
    return ratio < min_trust ? min_trust : ratio > max_trust ? max_trust : ratio;
  }

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const float step = -lr * trust_ratio();
    float p[kRun], u[kRun];
    param.load(first, length, p);
    update.load(first, length, u);
#pragma unroll
    for (int i = 0; i < kRun; ++i) p[i] = ::fmaf(step, u[i], p[i]);
    param.store(first, length, p);
    copy.store(first, length, p);
  }
};

// The type of an absent copy does not matter.
DType copy_type(const TensorView& copy) { return copy.empty() ? DType::f32 : copy.dtype; }

constexpr int kReduceThreads = 512;

std::int64_t reduce_blocks(const ExecContext& context, std::int64_t count, std::int64_t bytes,
                           const char* op) {
  const std::int64_t most =
      std::min(std::int64_t{4} * context.multiprocessors, workspace_rows(context, bytes, op));
  return std::clamp<std::int64_t>(blocks_for(count, kReduceThreads * kRun), 1, most);
}

// |value| as f32, not below it; infinity for inf and NaN.
__device__ __forceinline__ float magnitude(double value) {
  const double size = ::fabs(value);
  if (!(size <= static_cast<double>(FLT_MAX))) return INFINITY;
  const auto rounded = static_cast<float>(size);
  return static_cast<double>(rounded) < size ? ::nextafterf(rounded, INFINITY) : rounded;
}
__device__ __forceinline__ float magnitude(float value) {
  const float size = ::fabsf(value);
  return size <= FLT_MAX ? size : INFINITY;
}

template <class T>
__global__ void __launch_bounds__(kReduceThreads)
    largest_parts(const T* x, std::int64_t count, bool packed, float* parts) {
  __shared__ float scratch[32];
  float largest = 0;
  const std::int64_t stride = std::int64_t{gridDim.x} * kReduceThreads * kRun;
  std::int64_t first = (std::int64_t{blockIdx.x} * kReduceThreads + threadIdx.x) * kRun;
  for (; first < count; first += stride) {
    Math<T> values[kRun];
    load_run(x + first, count - first < kRun ? count - first : kRun, packed, values);
#pragma unroll
    for (int i = 0; i < kRun; ++i) largest = MaxOf{}(largest, magnitude(values[i]));
  }
  largest = block_reduce(largest, scratch, MaxOf{});
  if (threadIdx.x == 0) parts[blockIdx.x] = largest;
}

__global__ void __launch_bounds__(kReduceThreads)
    largest_of(const float* parts, std::int64_t count, bool accumulate, float* out) {
  __shared__ float scratch[32];
  float largest = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kReduceThreads) {
    largest = MaxOf{}(largest, parts[i]);
  }
  largest = block_reduce(largest, scratch, MaxOf{});
  if (threadIdx.x != 0) return;
  *out = accumulate ? MaxOf{}(largest, magnitude(*out)) : largest;
}

// The two rounding levels of SquaredSum: adding and subtracting `coarse` (`fine`) rounds to a
// multiple of q1 (q2).
struct RoundingLevels {
  double coarse, fine;
};

__device__ __forceinline__ RoundingLevels rounding_levels(float bound, double count) {
  const double square = static_cast<double>(bound) * static_cast<double>(bound);
  int exponent = 0;
  const double mantissa = ::frexp(square, &exponent);
  const double top = ::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
  // Squares are not negative, so q1 * 2^52 keeps them in one binade; remainders have a sign.
  return {count * top, 1.5 * count * (count * top * 0x1p-52)};
}

template <class T>
__global__ void __launch_bounds__(kReduceThreads)
    square_parts(const T* x, std::int64_t count, bool packed, const float* bound,
                 double total_count, double* parts) {
  __shared__ double scratch[32];
  const RoundingLevels levels = rounding_levels(*bound, total_count);
  double coarse = 0, fine = 0;
  const std::int64_t stride = std::int64_t{gridDim.x} * kReduceThreads * kRun;
  std::int64_t first = (std::int64_t{blockIdx.x} * kReduceThreads + threadIdx.x) * kRun;
  for (; first < count; first += stride) {
    double values[kRun];
    load_run(x + first, count - first < kRun ? count - first : kRun, packed, values);
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const double square = rounded_product(values[i], values[i]);
      const double part = (square + levels.coarse) - levels.coarse;
      coarse += part;
      fine += ((square - part) + levels.fine) - levels.fine;
    }
  }
  coarse = block_reduce(coarse, scratch, AddOf{});
  fine = block_reduce(fine, scratch, AddOf{});
  if (threadIdx.x != 0) return;
  parts[2 * blockIdx.x] = coarse;
  parts[2 * blockIdx.x + 1] = fine;
}

__global__ void __launch_bounds__(32)
    add_squares(const double* parts, std::int64_t count, const float* bound, bool accumulate,
                double* out) {
  double coarse = 0, fine = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += 32) {
    coarse += parts[2 * i];
    fine += parts[2 * i + 1];
  }
  coarse = warp_reduce(coarse, AddOf{});
  fine = warp_reduce(fine, AddOf{});
  if (!(*bound <= FLT_MAX)) {
    coarse = INFINITY;
    fine = 0;
  } else if (!(*bound > 0)) {
    coarse = fine = 0;
  }
  if (threadIdx.x != 0) return;
  out[0] = (accumulate ? out[0] : 0.0) + coarse;
  out[1] = (accumulate ? out[1] : 0.0) + fine;
}

}  // namespace

void execute(const AdamStep& op, const ExecContext& context) {
  with_two_types(op.grad.dtype, copy_type(op.copy), op.kName, [&](auto g, auto c, auto) {
    launch_runs(context, op.param.count(), AdamBody<decltype(g), decltype(c)>(op));
  });
}

void execute(const SgdStep& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.buf}) require_f32(view, op.kName);
  with_two_types(op.grad.dtype, copy_type(op.copy), op.kName, [&](auto g, auto c, auto) {
    launch_runs(context, op.param.count(), SgdBody<decltype(g), decltype(c)>(op));
  });
}

void execute(const LambUpdate& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.m, op.v, op.update}) require_f32(view, op.kName);
  with_float_type(op.grad.dtype, op.kName, [&](auto g) {
    launch_runs(context, op.param.count(), LambBody<decltype(g)>(op));
  });
}

void execute(const LambApply& op, const ExecContext& context) {
  for (const TensorView& view : {op.param, op.update}) require_f32(view, op.kName);
  with_float_type(copy_type(op.copy), op.kName, [&](auto c) {
    using C = decltype(c);
    launch_runs(context, op.param.count(),
                LambApplyBody<C>{Flat(op.param), Flat(op.update), Copy<C>(op.copy),
                                 op.param_square.as<double>(), op.update_square.as<double>(), op.lr,
                                 op.min_trust, op.max_trust});
  });
}

void execute(const AbsMax& op, const ExecContext& context) {
  const std::int64_t blocks = reduce_blocks(context, op.x.count(), sizeof(float), op.kName);
  auto* parts = reinterpret_cast<float*>(context.workspace);
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch(context.stream, {blocks, 1, kReduceThreads, 0}, largest_parts<T>, op.x.as<T>(),
           op.x.count(), aligned_16(op.x.data), parts);
  });
  launch(context.stream, {1, 1, kReduceThreads, 0}, largest_of, parts, blocks, op.accumulate,
         op.out.as<float>());
}

void execute(const SquaredSum& op, const ExecContext& context) {
  const std::int64_t blocks = reduce_blocks(context, op.x.count(), 2 * sizeof(double), op.kName);
  auto* parts = reinterpret_cast<double*>(context.workspace);
  const auto total =
      static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(op.total_count)));
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch(context.stream, {blocks, 1, kReduceThreads, 0}, square_parts<T>, op.x.as<T>(),
           op.x.count(), aligned_16(op.x.data), op.bound.as<float>(), total, parts);
  });
  launch(context.stream, {1, 1, 32, 0}, add_squares, parts, blocks, op.bound.as<float>(),
         op.accumulate, op.out.as<double>());
}

}  // namespace zl::cuda
