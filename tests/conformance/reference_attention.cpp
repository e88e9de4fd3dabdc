// Reference ops of attention and its rotary positions.
#include "core/ops/attention.h"
#include "tests/conformance/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace zl::test {
namespace {

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

// As transformers compute it, by wavelengths.
double stretched(double frequency, const RopeScaling& scaling) {
  const double length = 2 * std::acos(-1.0) / frequency;
  const double smooth = std::clamp(
      (scaling.original / length - scaling.low_freq) / (scaling.high_freq - scaling.low_freq), 0.0,
      1.0);
  return frequency * (smooth + (1 - smooth) / scaling.factor);
}

}  // namespace

void reference(const Rope& op) {
  const AttentionShape& s = op.shape;
  for (Index row = 0; row < s.rows(); ++row) {
    const double position = static_cast<double>(row % s.sequence);
    for (Index head = 0; head < s.heads + s.kv_heads; ++head) {
      for (Index j = 0; j < s.head_size / 2; ++j) {
        const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(s.head_size);
        const double frequency = stretched(std::pow(op.theta, exponent), op.scaling);
        const double angle = position * frequency * (op.inverse ? -1.0 : 1.0);
        const Index first = row * s.qkv_width() + head * s.head_size + j;
        const double a = at(op.qkv, first), b = at(op.qkv, first + s.head_size / 2);
        at(op.qkv, first) = a * std::cos(angle) - b * std::sin(angle);
        at(op.qkv, first + s.head_size / 2) = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
}

void reference(const AttentionForward& op) {
  for (Index b = 0; b < op.shape.batch; ++b) {
    for (Index h = 0; h < op.shape.heads; ++h) {
      for (Index i = 0; i < op.shape.sequence; ++i) attend(op, {op.shape, b, h}, i);
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

}  // namespace zl::test
