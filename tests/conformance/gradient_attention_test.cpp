// Gradients of attention, of rotary positions and of the norm of heads.
#include <cmath>
#include <memory>
#include <ostream>
#include <utility>

#include "tests/conformance/gradient.h"
#include "tests/conformance/random_blocks.h"

namespace zl::test {
namespace {

TEST_F(Gradient, Rope) {
  const AttentionShape shape{2, 7, 4, 2, 6};
  const RopeScaling llama31{// blends the first frequency
                            .kind = RopeKind::llama3,
                            .factor = 8,
                            .original = 4,
                            .low_freq = 0.2,
                            .high_freq = 0.8};
  const RopeScaling yarn{.kind = RopeKind::yarn, .factor = 4, .original = 4};
  for (const auto& [scaling, width] : {std::pair{llama31, 6}, std::pair{yarn, 4}}) {
    const auto table = std::make_shared<const RopeTable>(rope_table(10000.0, width, scaling, 7));
    const TensorView x = normal({shape.rows(), shape.qkv_width()}), dy = normal(x.shape);
    const auto loss = [&] {
      const TensorView y = w.copy(x);
      run(Rope{y, shape, table, false});
      return dot(y, dy);
    };
    const TensorView dx = w.copy(dy);
    run(Rope{dx, shape, table, true});
    check("dx", loss, x, dx);
  }
}

TEST_F(Gradient, HeadNorm) {
  for (const double offset : {0.0, 1.0}) {
    HeadNormForward forward;
    forward.shape = {2, 7, 4, 2, 6};
    const AttentionShape& shape = forward.shape;
    const TensorView x = normal({shape.rows(), shape.qkv_width()}), dy = normal(x.shape);
    forward.x = zeros({shape.rows(), normed_width(shape)});
    forward.rstd = zeros({shape.rows(), shape.heads + shape.kv_heads});
    forward.q_weight = normal({shape.head_size});
    forward.k_weight = normal({shape.head_size});
    forward.weight_offset = offset;
    const auto loss = [&] {
      forward.qkv = w.copy(x);
      run(forward);
      return dot(forward.qkv, dy);
    };
    loss();
    const TensorView dx = w.copy(dy), dq = zeros({shape.head_size}), dk = zeros(dq.shape);
    run(HeadNormBackward{dx, forward.x, forward.q_weight, forward.k_weight, forward.rstd, dq, dk,
                         shape, offset});
    check("dx", loss, x, dx);
    check("dq_weight", loss, forward.q_weight, dq);
    check("dk_weight", loss, forward.k_weight, dk);
  }
}

struct AttentionForm {
  const char* name;
  AttentionShape shape;
  float dropout;
  AttentionMask mask = {};
  bool lengths = false;
  bool blocks = false;  // of a random layout, causal as the mask
};

void PrintTo(const AttentionForm& form, std::ostream* out) { *out << form.name; }

class AttentionGradient : public Gradient, public testing::WithParamInterface<AttentionForm> {};

TEST_P(AttentionGradient, Qkv) {
  AttentionForward forward;
  forward.shape = GetParam().shape;
  const AttentionShape& s = forward.shape;
  const auto make_views = [&](auto&& make) -> QkvViews {
    if (s.keys == 0) return packed_qkv(make(Shape{s.rows(), s.qkv_width()}), s);
    return {{make(Shape{s.rows(), s.out_width()}), 0, s.out_width()},
            {make(Shape{s.key_rows(), s.kv_width()}), 0, s.kv_width()},
            {make(Shape{s.key_rows(), s.kv_width()}), 0, s.kv_width()}};
  };
  forward.qkv = make_views([&](const Shape& shape) { return normal(shape); });
  forward.out = zeros({s.rows(), s.out_width()});
  forward.lse = zeros({s.batch, s.heads, s.sequence});
  forward.scale = 1.0 / std::sqrt(static_cast<double>(s.head_size));
  forward.dropout = w.dropout(GetParam().dropout);
  forward.mask = GetParam().mask;
  if (GetParam().lengths) {
    forward.mask =
        AttentionMask::padded(w.integers({s.batch}, 1, static_cast<std::int32_t>(s.key_count())));
  }
  if (GetParam().blocks) {
    forward.mask = random_blocks(w, s, forward.mask.is_causal(), forward.mask.lengths);
  }
  const TensorView dout = normal(forward.out.shape);
  const auto loss = [&] {
    run(forward);
    return dot(forward.out, dout);
  };
  loss();
  const QkvViews dqkv = make_views([&](const Shape& shape) { return zeros(shape); });
  const TensorView delta = zeros(forward.lse.shape);
  run(AttentionBackward{dout, forward.out, forward.qkv, forward.lse, dqkv, delta, s, forward.scale,
                        forward.dropout, forward.mask});
  check("dq", loss, forward.qkv.q.matrix, dqkv.q.matrix);
  check("dk", loss, forward.qkv.k.matrix, dqkv.k.matrix);
  check("dv", loss, forward.qkv.v.matrix, dqkv.v.matrix);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, AttentionGradient,
    testing::Values(
        AttentionForm{"plain", {2, 9, 3, 3, 4}, 0.0f},
        AttentionForm{"grouped", {1, 11, 6, 2, 4}, 0.0f},
        AttentionForm{"grouped_dropout", {2, 9, 4, 1, 8}, 0.3f},
        AttentionForm{"long_dropout", {1, 70, 2, 2, 4}, 0.2f},
        AttentionForm{"cached", {2, 5, 4, 2, 4, 75, 66}, 0.2f},
        AttentionForm{"full", {2, 9, 4, 2, 4, 70}, 0.0f, AttentionMask::full()},
        AttentionForm{"window", {2, 70, 2, 1, 4, 75, 3}, 0.2f, AttentionMask::sliding(5)},
        AttentionForm{"lengths", {3, 9, 4, 2, 4}, 0.1f, {}, true},
        AttentionForm{"causal_blocks", {1, 80, 4, 2, 4}, 0.2f, {}, false, true},
        AttentionForm{"blocks", {1, 96, 2, 1, 4}, 0.0f, AttentionMask::full(), false, true},
        AttentionForm{"padded_blocks", {2, 48, 2, 2, 4}, 0.2f, {}, true, true}),
    [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace zl::test
