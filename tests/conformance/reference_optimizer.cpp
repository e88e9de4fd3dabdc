// Reference ops of the optimizers, the compressed ones included.
#include "core/ops/op.h"
#include "tests/conformance/reference_ops.h"

#include <algorithm>
#include <cmath>

namespace zl::test {
namespace {

template <class Update>
double gradient_scale(const Update& op) {
  return op.factor.empty() ? static_cast<double>(op.grad_scale) : at(op.factor, 0);
}

}  // namespace

void reference(const ClipFactor& op) {
  const double sum = at(op.parts, 0) + at(op.parts, 1);
  const double norm = std::sqrt(sum / op.gradients) / op.loss_scale;
  at(op.sum, 0) = sum;
  at(op.factor, 0) = op.unscale / std::max(1.0, (norm + 1e-6) / op.max_norm);
}

void reference(const AdamStep& op) {
  const double beta1 = op.beta1, beta2 = op.beta2, lr = op.lr, decay = op.weight_decay;
  for (Index i = 0; i < op.param.count(); ++i) {
    double p = at(op.param, i), g = gradient_scale(op) * at(op.grad, i);
    if (!op.decoupled) g += decay * p;
    const double m = at(op.m, i) = beta1 * at(op.m, i) + (1 - beta1) * g;
    const double v = at(op.v, i) = beta2 * at(op.v, i) + (1 - beta2) * g * g;
    if (op.decoupled) p -= lr * decay * p;
    p -= lr * (m / op.bias1) / (std::sqrt(v / op.bias2) + op.epsilon);
    at(op.param, i) = p;
    if (!op.copy.empty()) at(op.copy, i) = p;
  }
}

void reference(const SgdStep& op) {
  const double lr = op.lr, momentum = op.momentum, decay = op.weight_decay;
  for (Index i = 0; i < op.param.count(); ++i) {
    const double g = gradient_scale(op) * at(op.grad, i) + decay * at(op.param, i);
    double step = g;
    if (!op.buf.empty()) {
      const double buf = op.first ? g : momentum * at(op.buf, i) + g;
      at(op.buf, i) = buf;
      step = op.nesterov ? g + momentum * buf : buf;
    }
    at(op.param, i) -= lr * step;
    if (!op.copy.empty()) at(op.copy, i) = at(op.param, i);
  }
}

void reference(const LambUpdate& op) {
  const double beta1 = op.beta1, beta2 = op.beta2;
  for (Index i = 0; i < op.param.count(); ++i) {
    const double g = gradient_scale(op) * at(op.grad, i);
    const double m = at(op.m, i) = beta1 * at(op.m, i) + (1 - beta1) * g;
    const double v = at(op.v, i) = beta2 * at(op.v, i) + (1 - beta2) * g * g;
    at(op.update, i) =
        (m / op.bias1) / (std::sqrt(v / op.bias2) + op.epsilon) + op.weight_decay * at(op.param, i);
  }
}

void reference(const LambApply& op) {
  const double p = std::sqrt(at(op.param_square, 0) + at(op.param_square, 1));
  const double u = std::sqrt(at(op.update_square, 0) + at(op.update_square, 1));
  double trust = 1;
  if (p != 0 && u != 0)
    trust = std::min<double>(std::max<double>(p / u, op.min_trust), op.max_trust);
  if (!op.average.empty() && trust != 1) {
    at(op.average, 0) = op.average_beta * at(op.average, 0) + (1.0 - op.average_beta) * trust;
  }
  for (Index i = 0; i < op.param.count(); ++i) {
    at(op.param, i) -= op.lr * trust * at(op.update, i);
    if (!op.copy.empty()) at(op.copy, i) = at(op.param, i);
  }
}

void reference(const MomentumStep& op) {
  const double beta = op.beta1, scale = gradient_scale(op);
  for (Index i = 0; i < op.m.count(); ++i) {
    at(op.m, i) = beta * at(op.m, i) + (1 - beta) * scale * at(op.grad, i);
  }
}

void reference(const FrozenAdamStep& op) {
  const double lr = op.lr, decay = op.weight_decay;
  for (Index i = 0; i < op.param.count(); ++i) {
    double p = at(op.param, i);
    p -= lr * decay * p;
    p -= lr * (at(op.m, i) / op.bias1) / (std::sqrt(at(op.v, i) / op.bias2) + op.epsilon);
    at(op.param, i) = p;
    if (!op.copy.empty()) at(op.copy, i) = p;
  }
}

void reference(const LocalAdamStep& op) {
  const double lr = op.lr, decay = op.weight_decay;
  for (Index i = 0; i < op.param.count(); ++i) {
    const double w = at(op.param, i) + at(op.moved, i);
    const double u = at(op.m, i) / (std::sqrt(at(op.v, i)) + op.epsilon) + decay * w;
    at(op.moved, i) -= lr * u;
    at(op.copy, i) = at(op.param, i) + at(op.moved, i);
  }
}

void reference(const DenominatorScale& op) {
  for (Index i = 0; i < op.x.count(); ++i) at(op.x, i) *= std::sqrt(at(op.v, i)) + op.epsilon;
}

void reference(const SharedAdamStep& op) {
  for (Index i = 0; i < op.param.count(); ++i) {
    at(op.m, i) = -at(op.moved, i) / op.lr_sum;
    at(op.param, i) += at(op.moved, i) / (std::sqrt(at(op.v, i)) + op.epsilon);
    at(op.moved, i) = 0;
    at(op.copy, i) = at(op.param, i);
  }
}

void reference(const OnebitLambUpdate& op) {
  const double beta1 = op.beta1, beta2 = op.beta2;
  for (Index i = 0; i < op.param.count(); ++i) {
    const double m = at(op.m, i), g = (m - beta1 * at(op.m_last, i)) / (1 - beta1);
    const double fresh = at(op.v_fresh, i) = beta2 * at(op.v_fresh, i) + (1 - beta2) * g * g;
    const double d = std::sqrt(at(op.v, i)) + op.epsilon;
    at(op.direction, i) = m / d;
    at(op.update, i) = m / d + op.weight_decay * at(op.param, i);
    at(op.ratio, i) = d / (std::sqrt(fresh) + op.epsilon);
    at(op.m_last, i) = m;
  }
}

void reference(const OnebitLambTrust& op) {
  const double direction = std::sqrt(at(op.direction_square, 0) + at(op.direction_square, 1));
  const double update = std::sqrt(at(op.update_square, 0) + at(op.update_square, 1));
  const double share = update > 0 ? std::min(1.0, direction / update) : 1.0;
  const double last = at(op.last, 0), threshold = op.threshold;
  double factor = at(op.largest_ratio, 0) * share + (1 - share);
  factor = std::max<double>(op.factor_min, std::min<double>(op.factor_max, factor));
  factor = std::max(last * (1 - threshold), std::min(last * (1 + threshold), factor));
  at(op.last, 0) = factor;
  at(op.trust, 0) = at(op.frozen, 0) * factor;
}

void reference(const ScaledStep& op) {
  for (Index i = 0; i < op.param.count(); ++i) {
    at(op.param, i) -= op.lr * at(op.scale, 0) * at(op.update, i);
    if (!op.copy.empty()) at(op.copy, i) = at(op.param, i);
  }
}

}  // namespace zl::test
