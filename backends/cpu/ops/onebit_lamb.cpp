// 1-bit LAMB after its warm-up.
#include <algorithm>
#include <cmath>

#include "backends/cpu/ops/blocks.h"
#include "core/ops/onebit_lamb.h"

namespace zl::cpu {

void execute(const OnebitLambUpdate& op, const ExecContext& context) {
  const float beta1 = op.beta1, inverse1 = 1.0f / (1.0f - op.beta1);
  const float beta2 = op.beta2, rest2 = 1.0f - op.beta2;
  const float epsilon = op.epsilon, decay = op.weight_decay;
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    const float* __restrict param = op.param.as<const float>() + first;
    const float* __restrict m = op.m.as<const float>() + first;
    float* __restrict m_last = op.m_last.as<float>() + first;
    const float* __restrict v = op.v.as<const float>() + first;
    float* __restrict v_fresh = op.v_fresh.as<float>() + first;
    float* __restrict direction = op.direction.as<float>() + first;
    float* __restrict update = op.update.as<float>() + first;
    float* __restrict ratio = op.ratio.as<float>() + first;
    for (std::int64_t i = 0; i < length; ++i) {
      const float g = std::fma(-beta1, m_last[i], m[i]) * inverse1;
      v_fresh[i] = std::fma(rest2, g * g, beta2 * v_fresh[i]);
      const float d = std::sqrt(v[i]) + epsilon;
      direction[i] = m[i] / d;
      update[i] = std::fma(decay, param[i], direction[i]);
      ratio[i] = d / (std::sqrt(v_fresh[i]) + epsilon);
      m_last[i] = m[i];
    }
  });
}

void execute(const OnebitLambTrust& op, const ExecContext&) {
  const double* direction = op.direction_square.as<const double>();
  const double* update = op.update_square.as<const double>();
  const double whole = std::sqrt(update[0] + update[1]);
  const double share =
      whole > 0 ? std::min(1.0, std::sqrt(direction[0] + direction[1]) / whole) : 1.0;
  float* last = op.last.as<float>();
  auto factor =
      static_cast<float>(double{*op.largest_ratio.as<const float>()} * share + (1.0 - share));
  factor = std::max(op.factor_min, std::min(op.factor_max, factor));
  factor = std::max(*last * (1.0f - op.threshold), std::min(*last * (1.0f + op.threshold), factor));
  *last = factor;
  *op.trust.as<float>() = *op.frozen.as<const float>() * factor;
}

void execute(const ScaledStep& op, const ExecContext& context) {
  const float step = -op.lr * *op.scale.as<const float>();
  for_blocks(context, op.param.count(), [&](std::int64_t first, std::int64_t length) {
    float* __restrict param = op.param.as<float>() + first;
    const float* __restrict update = op.update.as<const float>() + first;
    for (std::int64_t i = 0; i < length; ++i) param[i] = std::fma(step, update[i], param[i]);
    if (!op.copy.empty()) store(op.copy, first, length, param);
  });
}

}  // namespace zl::cpu
