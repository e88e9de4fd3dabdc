// Reference ops of attention and its rotary positions.
#include "core/ops/attention.h"
#include "tests/conformance/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace zl::test {
namespace {

// What one (batch, head) reads and sees.
template <class Op>
struct Head {
  const Op& op;
  Index b, h;

  const AttentionShape& shape() const { return op.shape; }
  Index q(Index i, Index d) const { return place(op.qkv.q, b * shape().sequence + i, h, d); }
  Index k(Index j, Index d) const { return place(op.qkv.k, key_row(j), kv_head(), d); }
  Index v(Index j, Index d) const { return place(op.qkv.v, key_row(j), kv_head(), d); }
  Index out(Index i, Index d) const {
    return (b * shape().sequence + i) * shape().out_width() + h * shape().head_size + d;
  }
  Index lse(Index i) const { return (b * shape().heads + h) * shape().sequence + i; }
  // Among those of all ranks, where heads are cut.
  Index probability(Index i, Index j) const {
    const Index all = shape().all_heads == 0 ? shape().heads : shape().all_heads;
    const Index head = b * all + shape().first_head + h;
    return (head * shape().sequence + i) * shape().key_count() + j;
  }

  Index place(const ColumnsView& view, Index row, Index head, Index d) const {
    return row * view.matrix.columns() + view.first + head * shape().head_size + d;
  }
  Index key_row(Index j) const { return b * shape().key_count() + j; }
  Index kv_head() const { return h / (shape().heads / shape().kv_heads); }

  bool sees(Index i, Index j) const {
    const Index position = shape().first_position + i;
    switch (op.mask.kind) {
      case AttentionMaskKind::causal:
        return j <= position;
      case AttentionMaskKind::full:
        return true;
      case AttentionMaskKind::window:
        return j <= position && position - j < op.mask.window;
      default:
        return j < op.mask.lengths.template as<std::int32_t>()[b];
    }
  }
  // Minus infinity where the query does not see the key.
  double score(Index i, Index j) const {
    if (!sees(i, j)) return -std::numeric_limits<double>::infinity();
    double dot = 0;
    for (Index d = 0; d < shape().head_size; ++d) {
      dot += at(op.qkv.q.matrix, q(i, d)) * at(op.qkv.k.matrix, k(j, d));
    }
    return op.scale * dot;
  }
};

void attend(const Head<AttentionForward>& head, Index i) {
  const AttentionForward& op = head.op;
  const Index keys = op.shape.key_count();
  std::vector<double> p(static_cast<std::size_t>(keys));
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (Index j = 0; j < keys; ++j) {
    p[static_cast<std::size_t>(j)] = head.score(i, j);
    largest = std::max(largest, p[static_cast<std::size_t>(j)]);
  }
  const bool any = std::isfinite(largest);
  for (double& value : p) total += value = any ? std::exp(value - largest) : 0;
  at(op.lse, head.lse(i)) = largest + std::log(total);
  for (Index d = 0; d < op.shape.head_size; ++d) {
    double sum = 0;
    for (Index j = 0; j < keys && any; ++j) {
      sum += p[static_cast<std::size_t>(j)] / total *
             dropout_factor(op.dropout, head.probability(i, j)) * at(op.qkv.v.matrix, head.v(j, d));
    }
    at(op.out, head.out(i, d)) = sum;
  }
}

void attend_backward(const Head<AttentionBackward>& head, Index i) {
  const AttentionBackward& op = head.op;
  const Index size = op.shape.head_size;
  double delta = 0;
  for (Index d = 0; d < size; ++d) {
    delta += at(op.dout, head.out(i, d)) * at(op.out, head.out(i, d));
  }
  at(op.delta, head.lse(i)) = delta;
  const Index row = head.b * op.shape.sequence + i;
  for (Index j = 0; j < op.shape.key_count(); ++j) {
    if (!head.sees(i, j)) continue;
    const double p = std::exp(head.score(i, j) - at(op.lse, head.lse(i)));
    const double keep = dropout_factor(op.dropout, head.probability(i, j));
    const auto gradient = [&](const ColumnsView& view, Index line, Index h, Index d) -> double& {
      return at(view.matrix, head.place(view, line, h, d));
    };
    double dp = 0;
    for (Index d = 0; d < size; ++d) {
      dp += keep * at(op.dout, head.out(i, d)) * at(op.qkv.v.matrix, head.v(j, d));
      gradient(op.dqkv.v, head.key_row(j), head.kv_head(), d) +=
          keep * p * at(op.dout, head.out(i, d));
    }
    const double ds = op.scale * p * (dp - delta);
    for (Index d = 0; d < size; ++d) {
      gradient(op.dqkv.q, row, head.h, d) += ds * at(op.qkv.k.matrix, head.k(j, d));
      gradient(op.dqkv.k, head.key_row(j), head.kv_head(), d) +=
          ds * at(op.qkv.q.matrix, head.q(i, d));
    }
  }
}

template <class Op, class Attend>
void each_query(const Op& op, const Attend& attend) {
  for (Index b = 0; b < op.shape.batch; ++b) {
    for (Index h = 0; h < op.shape.heads; ++h) {
      for (Index i = 0; i < op.shape.sequence; ++i) attend(Head<Op>{op, b, h}, i);
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
    const double position = static_cast<double>(s.first_position + row % s.sequence);
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

void reference(const AttentionForward& op) { each_query(op, attend); }

void reference(const AttentionBackward& op) {
  for (const ColumnsView* view : {&op.dqkv.q, &op.dqkv.k, &op.dqkv.v}) {
    for (Index i = 0; i < view->matrix.count(); ++i) at(view->matrix, i) = 0;
  }
  each_query(op, attend_backward);
}

}  // namespace zl::test
