// Reference ops of a block beside attention: products, embeddings, norms, activations and the loss.
#include "core/ops/op.h"
#include "tests/conformance/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace zl::test {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_pdf(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

// Hendrycks & Gimpel 2016: x (1 + tanh(u)) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kCubic = 0.044715;
double plain(ActivationKind kind, double x) {
  if (kind == ActivationKind::tanh) return std::tanh(x);
  if (kind == ActivationKind::gelu_erf) return x * normal_cdf(x);
  return x * sigmoid(2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + kCubic * x * x * x));
}
double plain_slope(ActivationKind kind, double x) {
  if (kind == ActivationKind::tanh) return 1 / (std::cosh(x) * std::cosh(x));
  if (kind == ActivationKind::gelu_erf) return normal_cdf(x) + x * normal_pdf(x);
  const double c = 2.0 * std::sqrt(2.0 / std::numbers::pi);
  const double s = sigmoid(c * (x + kCubic * x * x * x));
  return s + x * s * (1.0 - s) * c * (1.0 + 3.0 * kCubic * x * x);
}

double gate_value(ActivationKind kind, double x) {
  return kind == ActivationKind::swiglu ? x * sigmoid(x) : plain(kind, x);
}
double gate_slope(ActivationKind kind, double x) {
  const double s = sigmoid(x);
  return kind == ActivationKind::swiglu ? s + x * s * (1.0 - s) : plain_slope(kind, x);
}

}  // namespace

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
    const Index place = token_at(op.tokens, row) - op.first_token;
    const bool is_here = place >= 0 && place < op.wte.rows();
    double value = is_here ? op.scale * at(op.wte, place * width + c) : 0;
    if (!op.wpe.empty()) value += at(op.wpe, (op.first_position + row % op.sequence) * width + c);
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
    const Index place = token_at(op.tokens, row) - op.first_token;
    if (place >= 0 && place < op.dwte.rows()) at(op.dwte, place * width + c) += op.scale * value;
    const Index position = op.first_position + row % op.sequence;
    if (!op.dwpe.empty()) at(op.dwpe, position * width + c) += value;
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
          (row[static_cast<std::size_t>(c)] - mean) * rstd * (op.weight_offset + at(op.weight, c)) +
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
            at(op.dout, r * width + j) * (op.weight_offset + at(op.weight, j)) * rstd * jacobian;
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

void reference(const ActivationForward& op) {
  const Index width = op.y.columns();
  for (Index i = 0; i < op.y.count(); ++i) {
    if (is_gated(op.kind)) {
      const Index gate = i / width * 2 * width + i % width;
      at(op.y, i) = gate_value(op.kind, at(op.x, gate)) * at(op.x, gate + width);
    } else {
      at(op.y, i) = plain(op.kind, at(op.x, i));
    }
  }
}

void reference(const ActivationBackward& op) {
  const Index width = op.dy.columns();
  for (Index i = 0; i < op.dy.count(); ++i) {
    if (is_gated(op.kind)) {
      const Index gate = i / width * 2 * width + i % width;
      const double g = at(op.x, gate), up = at(op.x, gate + width), dy = at(op.dy, i);
      at(op.dx, gate) = dy * up * gate_slope(op.kind, g);
      at(op.dx, gate + width) = dy * gate_value(op.kind, g);
    } else {
      at(op.dx, i) = at(op.dy, i) * plain_slope(op.kind, at(op.x, i));
    }
  }
}

void reference(const LogitStatistics& op) {
  const Index width = op.logits.columns();
  for (Index r = 0; r < op.logits.rows(); ++r) {
    const Index target = token_at(op.targets, r) - op.first_token;
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (Index c = 0; c < op.vocab; ++c) largest = std::max(largest, at(op.logits, r * width + c));
    for (Index c = 0; c < op.vocab; ++c) total += std::exp(at(op.logits, r * width + c) - largest);
    at(op.statistics, 3 * r) = largest;
    at(op.statistics, 3 * r + 1) = total;
    const bool here = target >= 0 && target < op.vocab;
    at(op.statistics, 3 * r + 2) = here ? at(op.logits, r * width + target) : 0.0;
  }
}

void reference(const CrossEntropy& op) {
  const Index width = op.logits.columns(), rows = op.logits.rows();
  for (Index r = 0; r < rows; ++r) {
    const Index id = token_at(op.targets, r), target = id - op.first_token;
    double total = 0, score = 0;
    if (op.statistics.empty()) {
      for (Index c = 0; c < op.vocab; ++c) total += std::exp(at(op.logits, r * width + c));
      if (id >= 0) score = at(op.logits, r * width + target);
    }
    for (Index part = r; part < op.statistics.count() / 3; part += rows) {
      total += at(op.statistics, 3 * part + 1) * std::exp(at(op.statistics, 3 * part));
      score += at(op.statistics, 3 * part + 2);
    }
    const double lse = std::log(total);
    at(op.losses, r) = id < 0 ? 0.0 : lse - score;
    for (Index c = 0; c < width && op.write_gradient; ++c) {
      double& logit = at(op.logits, r * width + c);
      const bool counts = id >= 0 && c < op.vocab;
      logit = counts ? op.grad_scale * (std::exp(logit - lse) - (c == target ? 1.0 : 0.0)) : 0.0;
    }
  }
}

}  // namespace zl::test
