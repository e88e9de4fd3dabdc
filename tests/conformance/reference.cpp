#include "tests/conformance/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace zl::test {
namespace {

using Index = std::int64_t;

double& at(const TensorView& view, Index i) { return view.as<double>()[i]; }
Index token_at(const TensorView& view, Index i) { return view.as<std::int32_t>()[i]; }

double dropout_factor(const DropoutSpec& spec, Index i) {
  if (spec.p <= 0) return 1;
  const bool kept = random_uniform(spec.key, spec.base + static_cast<std::uint64_t>(i)) >= spec.p;
  return kept ? 1.0 / (1.0 - static_cast<double>(spec.p)) : 0.0;
}

void put(const TensorView& view, Index i, double value, bool accumulate) {
  at(view, i) = value + (accumulate ? at(view, i) : 0.0);
}

void reference(const Gemm& op) {
  const Index a_row = op.a.columns(), c_row = op.c.columns();
  for (Index i = 0; i < op.m(); ++i) {
    for (Index j = 0; j < op.n(); ++j) {
      double sum = op.bias.empty() ? 0.0 : at(op.bias, j);
      for (Index l = 0; l < op.k(); ++l) {
        sum += at(op.a, op.trans_a ? l * a_row + i : i * a_row + l) *
               at(op.b, op.trans_b ? j * op.k() + l : l * op.n() + j);
      }
      put(op.c, i * c_row + j, sum, op.accumulate);
    }
  }
}

void reference(const BiasBackward& op) {
  for (Index c = 0; c < op.dout.columns(); ++c) {
    double sum = 0;
    for (Index r = 0; r < op.dout.rows(); ++r) sum += at(op.dout, r * op.dout.columns() + c);
    put(op.dbias, c, sum, op.accumulate);
  }
}

void reference(const EmbeddingForward& op) {
  const Index width = op.out.columns();
  for (Index i = 0; i < op.out.count(); ++i) {
    const Index row = i / width, c = i % width;
    double value = at(op.wte, token_at(op.tokens, row) * width + c);
    if (!op.wpe.empty()) value += at(op.wpe, row % op.sequence * width + c);
    at(op.out, i) = value * dropout_factor(op.dropout, i);
  }
}

void reference(const EmbeddingBackward& op) {
  const Index width = op.dout.columns();
  for (Index i = 0; i < op.dwte.count() && !op.accumulate_wte; ++i) at(op.dwte, i) = 0;
  for (Index i = 0; i < op.dwpe.count() && !op.accumulate_wpe; ++i) at(op.dwpe, i) = 0;
  for (Index i = 0; i < op.dout.count(); ++i) {
    const Index row = i / width, c = i % width;
    const double value = at(op.dout, i) * dropout_factor(op.dropout, i);
    at(op.dwte, token_at(op.tokens, row) * width + c) += value;
    if (!op.dwpe.empty()) at(op.dwpe, row % op.sequence * width + c) += value;
  }
}

void reference(const NormForward& op, const Round& round) {
  const Index width = op.x.columns();
  for (Index r = 0; r < op.x.rows(); ++r) {
    std::vector<double> row(static_cast<std::size_t>(width));
    double mean = 0, square = 0;
    for (Index c = 0; c < width; ++c) {
      const Index i = r * width + c;
      double& value = row[static_cast<std::size_t>(c)];
      value = at(op.x, i);
      if (!op.add.empty()) {
        value = round(op.sum, value + at(op.add, i) * dropout_factor(op.dropout, i));
        at(op.sum, i) = value;
      }
      mean += value / static_cast<double>(width);
    }
    if (op.kind == NormKind::rms_norm) mean = 0;
    for (const double value : row) square += (value - mean) * (value - mean);
    const double rstd = 1.0 / std::sqrt(square / static_cast<double>(width) + op.epsilon);
    if (op.kind == NormKind::layer_norm) at(op.mean, r) = mean;
    at(op.rstd, r) = rstd;
    for (Index c = 0; c < width; ++c) {
      at(op.out, r * width + c) =
          (row[static_cast<std::size_t>(c)] - mean) * rstd * at(op.weight, c) +
          (op.bias.empty() ? 0.0 : at(op.bias, c));
    }
  }
}

// Through the Jacobian d xhat_j / d x_i = rstd (delta_ij - 1/C [LayerNorm] - xhat_i xhat_j / C).
void reference(const NormBackward& op) {
  const Index width = op.x.columns(), rows = op.x.rows();
  std::vector<double> dweight(static_cast<std::size_t>(width)), dbias(dweight);
  for (Index r = 0; r < rows; ++r) {
    const double mean = op.kind == NormKind::layer_norm ? at(op.mean, r) : 0.0;
    const double rstd = at(op.rstd, r), n = static_cast<double>(width);
    const auto xhat = [&](Index c) { return (at(op.x, r * width + c) - mean) * rstd; };
    std::vector<double> dx(static_cast<std::size_t>(width));
    for (Index i = 0; i < width; ++i) {
      for (Index j = 0; j < width; ++j) {
        const double centre = op.kind == NormKind::layer_norm ? 1.0 / n : 0.0;
        const double jacobian = (i == j ? 1.0 : 0.0) - centre - xhat(i) * xhat(j) / n;
        dx[static_cast<std::size_t>(i)] +=
            at(op.dout, r * width + j) * at(op.weight, j) * rstd * jacobian;
      }
      dweight[static_cast<std::size_t>(i)] += at(op.dout, r * width + i) * xhat(i);
      dbias[static_cast<std::size_t>(i)] += at(op.dout, r * width + i);
    }
    for (Index c = 0; c < width; ++c) {
      const double residual = op.dresidual.empty() ? 0.0 : at(op.dresidual, r * width + c);
      at(op.dx, r * width + c) = dx[static_cast<std::size_t>(c)] + residual;
    }
  }
  for (Index c = 0; c < width; ++c) {
    put(op.dweight, c, dweight[static_cast<std::size_t>(c)], op.accumulate);
    if (!op.dbias.empty()) put(op.dbias, c, dbias[static_cast<std::size_t>(c)], op.accumulate);
  }
}

void reference(const Rope& op) {
  const AttentionShape& s = op.shape;
  for (Index row = 0; row < s.rows(); ++row) {
    const double position = static_cast<double>(row % s.sequence);
    for (Index head = 0; head < s.heads + s.kv_heads; ++head) {
      for (Index j = 0; j < s.head_size / 2; ++j) {
        const double frequency =
            std::pow(op.theta, -2.0 * static_cast<double>(j) / static_cast<double>(s.head_size));
        const double angle = position * frequency * (op.inverse ? -1.0 : 1.0);
        const Index first = row * s.qkv_width() + head * s.head_size + j;
        const double a = at(op.qkv, first), b = at(op.qkv, first + s.head_size / 2);
        at(op.qkv, first) = a * std::cos(angle) - b * std::sin(angle);
        at(op.qkv, first + s.head_size / 2) = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
}

// Where the parts of one (batch, head) lie.
struct HeadIndex {
  const AttentionShape& shape;
  Index b, h;
  Index q(Index i, Index d) const { return row(i) * shape.qkv_width() + h * shape.head_size + d; }
  Index k(Index j, Index d) const { return key_head(j, shape.heads, d); }
  Index v(Index j, Index d) const { return key_head(j, shape.heads + shape.kv_heads, d); }
  Index out(Index i, Index d) const { return row(i) * shape.out_width() + h * shape.head_size + d; }
  Index lse(Index i) const { return (b * shape.heads + h) * shape.sequence + i; }
  Index probability(Index i, Index j) const { return lse(i) * shape.sequence + j; }

 private:
  Index row(Index i) const { return b * shape.sequence + i; }
  Index key_head(Index j, Index first, Index d) const {
    const Index head = first + h / (shape.heads / shape.kv_heads);
    return row(j) * shape.qkv_width() + head * shape.head_size + d;
  }
};

double score(const TensorView& qkv, const HeadIndex& at_head, double scale, Index i, Index j) {
  double dot = 0;
  for (Index d = 0; d < at_head.shape.head_size; ++d) {
    dot += at(qkv, at_head.q(i, d)) * at(qkv, at_head.k(j, d));
  }
  return scale * dot;
}

void attend(const AttentionForward& op, const HeadIndex& head, Index i) {
  std::vector<double> p(static_cast<std::size_t>(i + 1));
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (Index j = 0; j <= i; ++j) {
    p[static_cast<std::size_t>(j)] = score(op.qkv, head, op.scale, i, j);
    largest = std::max(largest, p[static_cast<std::size_t>(j)]);
  }
  for (double& value : p) total += value = std::exp(value - largest);
  at(op.lse, head.lse(i)) = largest + std::log(total);
  for (Index d = 0; d < op.shape.head_size; ++d) {
    double sum = 0;
    for (Index j = 0; j <= i; ++j) {
      sum += p[static_cast<std::size_t>(j)] / total *
             dropout_factor(op.dropout, head.probability(i, j)) * at(op.qkv, head.v(j, d));
    }
    at(op.out, head.out(i, d)) = sum;
  }
}

void reference(const AttentionForward& op) {
  for (Index b = 0; b < op.shape.batch; ++b) {
    for (Index h = 0; h < op.shape.heads; ++h) {
      for (Index i = 0; i < op.shape.sequence; ++i) attend(op, {op.shape, b, h}, i);
    }
  }
}

void attend_backward(const AttentionBackward& op, const HeadIndex& head, Index i) {
  const Index size = op.shape.head_size;
  double delta = 0;
  for (Index d = 0; d < size; ++d) {
    delta += at(op.dout, head.out(i, d)) * at(op.out, head.out(i, d));
  }
  at(op.delta, head.lse(i)) = delta;
  for (Index j = 0; j <= i; ++j) {
    const double p = std::exp(score(op.qkv, head, op.scale, i, j) - at(op.lse, head.lse(i)));
    const double keep = dropout_factor(op.dropout, head.probability(i, j));
    double dp = 0;
    for (Index d = 0; d < size; ++d) {
      dp += keep * at(op.dout, head.out(i, d)) * at(op.qkv, head.v(j, d));
      at(op.dqkv, head.v(j, d)) += keep * p * at(op.dout, head.out(i, d));
    }
    const double ds = op.scale * p * (dp - delta);
    for (Index d = 0; d < size; ++d) {
      at(op.dqkv, head.q(i, d)) += ds * at(op.qkv, head.k(j, d));
      at(op.dqkv, head.k(j, d)) += ds * at(op.qkv, head.q(i, d));
    }
  }
}

void reference(const AttentionBackward& op) {
  for (Index i = 0; i < op.dqkv.count(); ++i) at(op.dqkv, i) = 0;
  for (Index b = 0; b < op.shape.batch; ++b) {
    for (Index h = 0; h < op.shape.heads; ++h) {
      for (Index i = 0; i < op.shape.sequence; ++i) attend_backward(op, {op.shape, b, h}, i);
    }
  }
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_pdf(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

// Hendrycks & Gimpel 2016: x (1 + tanh(u)) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kCubic = 0.044715;
double gelu(ActivationKind kind, double x) {
  if (kind == ActivationKind::gelu_erf) return x * normal_cdf(x);
  return x * sigmoid(2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + kCubic * x * x * x));
}
double gelu_slope(ActivationKind kind, double x) {
  if (kind == ActivationKind::gelu_erf) return normal_cdf(x) + x * normal_pdf(x);
  const double c = 2.0 * std::sqrt(2.0 / std::numbers::pi);
  const double s = sigmoid(c * (x + kCubic * x * x * x));
  return s + x * s * (1.0 - s) * c * (1.0 + 3.0 * kCubic * x * x);
}

void reference(const ActivationForward& op) {
  const Index width = op.y.columns();
  for (Index i = 0; i < op.y.count(); ++i) {
    if (op.kind == ActivationKind::swiglu) {
      const Index gate = i / width * 2 * width + i % width;
      at(op.y, i) = at(op.x, gate) * sigmoid(at(op.x, gate)) * at(op.x, gate + width);
    } else {
      at(op.y, i) = gelu(op.kind, at(op.x, i));
    }
  }
}

void reference(const ActivationBackward& op) {
  const Index width = op.dy.columns();
  for (Index i = 0; i < op.dy.count(); ++i) {
    if (op.kind == ActivationKind::swiglu) {
      const Index gate = i / width * 2 * width + i % width;
      const double g = at(op.x, gate), up = at(op.x, gate + width), s = sigmoid(g);
      const double dy = at(op.dy, i);
      at(op.dx, gate) = dy * up * (s + g * s * (1.0 - s));
      at(op.dx, gate + width) = dy * g * s;
    } else {
      at(op.dx, i) = at(op.dy, i) * gelu_slope(op.kind, at(op.x, i));
    }
  }
}

void reference(const CrossEntropy& op) {
  const Index width = op.logits.columns();
  for (Index r = 0; r < op.logits.rows(); ++r) {
    const Index target = token_at(op.targets, r);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (Index c = 0; c < op.vocab; ++c) largest = std::max(largest, at(op.logits, r * width + c));
    for (Index c = 0; c < op.vocab; ++c) total += std::exp(at(op.logits, r * width + c) - largest);
    const double lse = largest + std::log(total);
    at(op.losses, r) = target < 0 ? 0.0 : lse - at(op.logits, r * width + target);
    for (Index c = 0; c < width && op.write_gradient; ++c) {
      double& logit = at(op.logits, r * width + c);
      const bool counts = target >= 0 && c < op.vocab;
      logit = counts ? op.grad_scale * (std::exp(logit - lse) - (c == target ? 1.0 : 0.0)) : 0.0;
    }
  }
}

void reference(const Sum& op) {
  double sum = 0;
  for (Index i = 0; i < op.x.count(); ++i) sum += at(op.x, i);
  put(op.out, 0, op.scale * sum, op.accumulate);
}

void reference(const Fill& op) {
  for (Index i = 0; i < op.x.count(); ++i) {
    if (op.x.dtype == DType::i32) {
      op.x.as<std::int32_t>()[i] = static_cast<std::int32_t>(op.value);
    } else {
      at(op.x, i) = op.value;
    }
  }
}

void reference(const Axpy& op) {
  for (Index i = 0; i < op.x.count(); ++i) put(op.y, i, op.alpha * at(op.x, i), op.accumulate);
}

void reference(const Dropout& op) {
  for (Index i = 0; i < op.x.count(); ++i) at(op.y, i) = at(op.x, i) * dropout_factor(op.spec, i);
}

void reference(const RandomNormal& op) {
  for (Index i = 0; i < op.x.count(); ++i) {
    const std::uint64_t index = op.base + static_cast<std::uint64_t>(i), even = index / 2 * 2;
    const double u = std::ldexp(static_cast<double>(random_bits(op.key, even)) + 1.0, -32);
    const double turn = std::ldexp(static_cast<double>(random_bits(op.key, even + 1)), -32);
    const double angle = 2.0 * std::numbers::pi * turn;
    at(op.x, i) = op.std * std::sqrt(-2.0 * std::log(u)) *
                  (index == even ? std::cos(angle) : std::sin(angle));
  }
}

void reference(const AbsMax& op) {
  double largest = op.accumulate ? at(op.out, 0) : 0.0;
  for (Index i = 0; i < op.x.count(); ++i) {
    const double value = std::abs(at(op.x, i));
    largest =
        std::isfinite(value) ? std::max(largest, value) : std::numeric_limits<double>::infinity();
  }
  at(op.out, 0) = largest;
}

double power_of_two_above(double x) { return std::exp2(std::ceil(std::log2(x))); }

void reference(const SquaredSum& op) {
  double coarse = 0, fine = 0;
  if (at(op.bound, 0) > 0) {
    const double top = power_of_two_above(at(op.bound, 0) * at(op.bound, 0));
    const double n = power_of_two_above(static_cast<double>(op.total_count));
    const double q1 = std::ldexp(n * top, -52), q2 = std::ldexp(n * q1, -52);
    for (Index i = 0; i < op.x.count(); ++i) {
      const double square = at(op.x, i) * at(op.x, i);
      const double high = std::rint(square / q1) * q1;
      coarse += high;
      fine += std::rint((square - high) / q2) * q2;
    }
  }
  put(op.out, 0, coarse, op.accumulate);
  put(op.out, 1, fine, op.accumulate);
}

void reference(const AdamStep& op) {
  const double beta1 = op.beta1, beta2 = op.beta2, lr = op.lr, decay = op.weight_decay;
  for (Index i = 0; i < op.param.count(); ++i) {
    double p = at(op.param, i), g = op.grad_scale * at(op.grad, i);
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
    const double g = op.grad_scale * at(op.grad, i) + decay * at(op.param, i);
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
    const double g = op.grad_scale * at(op.grad, i);
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

// Tensors of bytes are f64 here too: one number a byte.
bool sign_bit(const TensorView& packed, Index row, Index i) {
  const auto byte = static_cast<unsigned>(at(packed, row * packed.columns() + i / 8));
  return (byte >> (7 - i % 8)) & 1;
}

void reference(const SignCompress& op) {
  const double scale =
      std::sqrt((at(op.square, 0) + at(op.square, 1)) / static_cast<double>(op.square_count));
  at(op.scale, 0) = scale;
  for (Index i = 0; i < op.packed.count(); ++i) at(op.packed, i) = 0;
  for (Index i = 0; i < op.count; ++i) {
    const Index row = i / op.x.columns(), column = i % op.x.columns();
    const bool positive = at(op.x, i) >= 0;
    at(op.x, i) -= positive ? scale : -scale;
    if (positive) at(op.packed, row * op.packed.columns() + column / 8) += 128 >> column % 8;
  }
}

void reference(const SignAverage& op) {
  for (Index i = 0; i < op.count; ++i) {
    double sum = 0;
    for (Index row = 0; row < op.packed.rows(); ++row) {
      const double scale = at(op.scales, row * op.scales.columns() + op.column);
      sum += sign_bit(op.packed, row, i) ? scale : -scale;
    }
    at(op.out, i) += sum / static_cast<double>(op.packed.rows());
  }
}

void reference(const SignUnpack& op) {
  for (Index i = 0; i < op.out.count(); ++i) {
    const Index row = i / op.out.columns(), column = i % op.out.columns();
    const double scale = at(op.scales, row * op.scales.columns() + op.column);
    at(op.out, i) = i >= op.count ? 0 : sign_bit(op.packed, row, column) ? scale : -scale;
  }
}

void reference(const MomentumStep& op) {
  const double beta = op.beta1, scale = op.grad_scale;
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

double signed_byte(const TensorView& q, Index i) {
  const double byte = at(q, i);
  return byte < 128 ? byte : byte - 256;
}

// The quotient in f32, as the op says: in f64 ties would fall to another side.
void reference(const BlockQuantize& op) {
  const Index columns = op.q.columns(), blocks = op.scales.columns();
  for (Index row = 0; row < op.q.rows(); ++row) {
    for (Index block = 0; block < blocks; ++block) {
      const Index begin = row * columns + block * op.block;
      const Index end = std::min(begin + op.block, (row + 1) * columns);
      float largest = 0;
      bool finite = true;
      for (Index i = begin; i < end; ++i) {
        finite = finite && std::isfinite(at(op.x, i));
        if (finite) largest = std::max(largest, static_cast<float>(std::abs(at(op.x, i))));
      }
      at(op.scales, row * blocks + block) =
          finite ? double{largest} / 127 : std::numeric_limits<double>::infinity();
      const float inverse = finite && largest > 0 ? 127.0f / largest : 0.0f;
      for (Index i = begin; i < end; ++i) {
        const double q = finite ? std::nearbyint(static_cast<float>(at(op.x, i)) * inverse) : 0;
        at(op.q, i) = q < 0 ? q + 256 : q;
      }
    }
  }
}

void reference(const BlockDequantize& op) {
  const Index columns = op.q.columns(), blocks = op.scales.columns();
  for (Index i = 0; i < op.q.count(); ++i) {
    at(op.y, i) =
        signed_byte(op.q, i) * at(op.scales, i / columns * blocks + i % columns / op.block);
  }
}

void reference(const BlockSum& op) {
  const Index columns = op.q.columns(), blocks = op.scales.columns();
  for (Index i = 0; i < columns; ++i) {
    double sum = 0;
    for (Index row = 0; row < op.q.rows(); ++row) {
      sum += signed_byte(op.q, row * columns + i) * at(op.scales, row * blocks + i / op.block);
    }
    put(op.out, i, op.factor * sum, op.accumulate);
  }
}

}  // namespace

void run_reference(const Op& op, const Round& round) {
  std::visit(
      [&](const auto& concrete) {
        if constexpr (requires { reference(concrete, round); }) {
          reference(concrete, round);
        } else {
          reference(concrete);
        }
      },
      op);
}

}  // namespace zl::test
