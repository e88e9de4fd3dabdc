// Reference ops of attention and its rotary positions.
#include "core/ops/attention.h"
#include "core/ops/head_norm.h"
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

  // By the queries' half of the table; the kernels of the backward walk the keys' half too.
  bool in_block(Index i, Index j) const {
    const auto* words = op.mask.blocks.template as<std::int32_t>();
    const Index tiles = (shape().sequence + 63) / 64;
    const auto* start = words + (op.mask.layouts == 1 ? 0 : h) * (tiles + 1) + i / 64;
    for (Index entry = start[0]; entry < start[1]; ++entry) {
      if (words[entry] / 16 == j / 16) return (words[entry] >> (i % 64 / 16) & 1) != 0;
    }
    return false;
  }
  bool padded(Index j) const {
    return !op.mask.lengths.empty() && j >= op.mask.lengths.template as<std::int32_t>()[b];
  }
  bool sees(Index i, Index j) const {
    const Index position = shape().first_position + i;
    switch (op.mask.kind) {
      case AttentionMaskKind::blocks:
        return in_block(i, j) && !padded(j);
      case AttentionMaskKind::causal_blocks:
        return in_block(i, j) && j <= position && !padded(j);
      case AttentionMaskKind::causal:
        return j <= position;
      case AttentionMaskKind::full:
        return true;
      case AttentionMaskKind::window:
        return j <= position && position - j < op.mask.window;
      default:
        return !padded(j);
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

}  // namespace

void reference(const Rope& op) {
  const AttentionShape& s = op.shape;
  const Index pairs = op.table->width() / 2;
  for (Index row = 0; row < s.rows(); ++row) {
    const double position = static_cast<double>(s.first_position + row % s.sequence);
    for (Index head = 0; head < s.heads + s.kv_heads; ++head) {
      for (Index j = 0; j < pairs; ++j) {
        const double frequency = op.table->frequencies[static_cast<std::size_t>(j)];
        const double angle = position * frequency * (op.inverse ? -1.0 : 1.0);
        const Index first = row * s.qkv_width() + head * s.head_size + j;
        const double a = at(op.qkv, first), b = at(op.qkv, first + pairs);
        const double m = op.table->multiplier;
        at(op.qkv, first) = m * (a * std::cos(angle) - b * std::sin(angle));
        at(op.qkv, first + pairs) = m * (b * std::cos(angle) + a * std::sin(angle));
      }
    }
  }
}

// Where heads lie: in qkv, in what their norm keeps, and their weight.
struct NormedHead {
  Index qkv = 0, x = 0, rstd = 0;
  bool is_query = false;
};

template <class Visit>
void each_normed_head(const AttentionShape& s, const Visit& visit) {
  const Index heads = s.heads + s.kv_heads;
  for (Index row = 0; row < s.rows(); ++row) {
    for (Index h = 0; h < heads; ++h) {
      visit(NormedHead{row * s.qkv_width() + h * s.head_size, (row * heads + h) * s.head_size,
                       row * heads + h, h < s.heads});
    }
  }
}

void reference(const HeadNormForward& op) {
  const Index size = op.shape.head_size;
  each_normed_head(op.shape, [&](const NormedHead& head) {
    double square = 0;
    for (Index c = 0; c < size; ++c) square += std::pow(at(op.qkv, head.qkv + c), 2);
    const double rstd = 1.0 / std::sqrt(square / static_cast<double>(size) + op.epsilon);
    at(op.rstd, head.rstd) = rstd;
    for (Index c = 0; c < size; ++c) {
      const double weight = op.weight_offset + at(head.is_query ? op.q_weight : op.k_weight, c);
      at(op.x, head.x + c) = at(op.qkv, head.qkv + c);
      at(op.qkv, head.qkv + c) *= rstd * weight;
    }
  });
}

// Through the Jacobian, as reference(NormBackward).
void reference(const HeadNormBackward& op) {
  const Index size = op.shape.head_size;
  for (Index c = 0; c < size && !op.accumulate; ++c) at(op.dq_weight, c) = at(op.dk_weight, c) = 0;
  each_normed_head(op.shape, [&](const NormedHead& head) {
    const double rstd = at(op.rstd, head.rstd), n = static_cast<double>(size);
    const auto xhat = [&](Index c) { return at(op.x, head.x + c) * rstd; };
    std::vector<double> dx(static_cast<std::size_t>(size));
    for (Index j = 0; j < size; ++j) {
      const double d = at(op.dqkv, head.qkv + j);
      const double weight = op.weight_offset + at(head.is_query ? op.q_weight : op.k_weight, j);
      at(head.is_query ? op.dq_weight : op.dk_weight, j) += d * xhat(j);
      for (Index i = 0; i < size; ++i) {
        dx[static_cast<std::size_t>(i)] +=
            d * weight * rstd * ((i == j ? 1.0 : 0.0) - xhat(i) * xhat(j) / n);
      }
    }
    for (Index c = 0; c < size; ++c) at(op.dqkv, head.qkv + c) = dx[static_cast<std::size_t>(c)];
  });
}

void reference(const AttentionForward& op) { each_query(op, attend); }

void reference(const AttentionBackward& op) {
  for (const ColumnsView* view : {&op.dqkv.q, &op.dqkv.k, &op.dqkv.v}) {
    for (Index i = 0; i < view->matrix.count(); ++i) at(view->matrix, i) = 0;
  }
  each_query(op, attend_backward);
}

}  // namespace zl::test
