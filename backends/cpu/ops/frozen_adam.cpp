// Adam in halves: element-wise with explicit fused multiply-adds.
#include <cmath>

#include "backends/cpu/ops/blocks.h"
#include "core/ops/frozen_adam.h"

namespace zl::cpu {
namespace {

void store_copy(const TensorView& copy, std::int64_t first, std::int64_t length,
                const float* values) {
  if (!copy.empty()) store(copy, first, length, values);
}

}  // namespace

void execute(const MomentumStep& op, const ExecContext& context) {
  with_float_type(op.grad.dtype, op.kName, [](auto) {});
  const float scale = gradient_scale(op), beta = op.beta1, rest = 1.0f - op.beta1;
  for_blocks(context, op.m.count(), [&](std::int64_t first, std::int64_t length) {
    float buffer[kBlock];
    const float* __restrict grad = load(op.grad, first, length, buffer);
    float* __restrict m = op.m.as<float>() + first;
    for (std::int64_t i = 0; i < length; ++i) m[i] = std::fma(rest, scale * grad[i], beta * m[i]);
  });
}

void execute(const FrozenAdamStep& op, const ExecContext& context) {
  const float epsilon = op.epsilon, inverse_root = 1.0f / std::sqrt(op.bias2);
  const float shrink = -op.lr * op.weight_decay, step = -op.lr / op.bias1;
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float* __restrict param = op.param.as<float>() + first;
    const float* __restrict m = op.m.as<const float>() + first;
    const float* __restrict v = op.v.as<const float>() + first;
    for (std::int64_t i = 0; i < length; ++i) {
      const float d = std::fma(std::sqrt(v[i]), inverse_root, epsilon);
      const float p = std::fma(param[i], shrink, param[i]);
      param[i] = std::fma(m[i] / d, step, p);
    }
    store_copy(op.copy, first, length, param);
  });
}

void execute(const LocalAdamStep& op, const ExecContext& context) {
  const float epsilon = op.epsilon, decay = op.weight_decay, step = -op.lr;
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    const float* __restrict param = op.param.as<const float>() + first;
    const float* __restrict m = op.m.as<const float>() + first;
    const float* __restrict v = op.v.as<const float>() + first;
    float* __restrict moved = op.moved.as<float>() + first;
    float working[kBlock];
    for (std::int64_t i = 0; i < length; ++i) {
      const float update = std::fma(decay, param[i] + moved[i], m[i] / (std::sqrt(v[i]) + epsilon));
      moved[i] = std::fma(step, update, moved[i]);
      working[i] = param[i] + moved[i];
    }
    store_copy(op.copy, first, length, working);
  });
}

void execute(const DenominatorScale& op, const ExecContext& context) {
  for_blocks(context, op.x.count(), [&](std::int64_t first, std::int64_t length) {
    float* __restrict x = op.x.as<float>() + first;
    const float* __restrict v = op.v.as<const float>() + first;
    for (std::int64_t i = 0; i < length; ++i) x[i] *= std::sqrt(v[i]) + op.epsilon;
  });
}

void execute(const SharedAdamStep& op, const ExecContext& context) {
  const float inverse = -1.0f / op.lr_sum, epsilon = op.epsilon;
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float* __restrict param = op.param.as<float>() + first;
    float* __restrict m = op.m.as<float>() + first;
    const float* __restrict v = op.v.as<const float>() + first;
    float* __restrict moved = op.moved.as<float>() + first;
    for (std::int64_t i = 0; i < length; ++i) {
      m[i] = moved[i] * inverse;
      param[i] += moved[i] / (std::sqrt(v[i]) + epsilon);
      moved[i] = 0;
    }
    store_copy(op.copy, first, length, param);
  });
}

}  // namespace zl::cpu
