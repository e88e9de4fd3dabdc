// What ops refuse, on every harness: with a message that names the op and the value.
#include <gtest/gtest.h>

#include "core/ops/op.h"
#include "tests/conformance/random_blocks.h"
#include "tests/conformance/workspace.h"

namespace zl::test {
namespace {

void expect_refused(const Op& op, const char* part) {
  for (const auto& harness : make_harnesses()) {
    try {
      std::visit([](const auto& concrete) { concrete.validate(); }, op);
      harness->run(op);
      ADD_FAILURE() << harness->name() << " accepted it";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(BadInput, TokenBeyondTheVocabulary) {
  Workspace w(test_seed());
  for (const std::int32_t token : {-1, 7, 1000000}) {
    EmbeddingForward op;
    op.sequence = 4;
    op.tokens = w.integers({4}, 0, 6);
    set(op.tokens, 2, token);
    op.wte = w.normal(DType::f32, {7, 5});
    op.out = w.zeros(DType::f32, {4, 5});
    expect_refused(op, ("token " + std::to_string(token) + " at position 2").c_str());
    EmbeddingBackward backward;
    backward.sequence = 4;
    backward.tokens = op.tokens;
    backward.dout = op.out;
    backward.dwte = op.wte;
    expect_refused(backward, "vocabulary of 7");
  }
}

TEST(BadInput, IntegersWhereFloatsBelong) {
  Workspace w(test_seed());
  const TensorView integers = w.integers({5}, 0, 9), floats = w.zeros(DType::f32, {5});
  expect_refused(Axpy{integers, floats}, "axpy");
  expect_refused(AbsMax{integers, w.zeros(DType::f32, {1})}, "abs_max");
  AdamStep adam{.param = floats, .grad = integers, .m = floats, .v = floats, .copy = {}};
  expect_refused(adam, "adam_step");
}

TEST(BadInput, CountsThatDiffer) {
  Workspace w(test_seed());
  const TensorView five = w.zeros(DType::f32, {5}), six = w.zeros(DType::f32, {6});
  expect_refused(Axpy{five, six}, "axpy");
  expect_refused(Dropout{five, six, {}}, "dropout");
  expect_refused(AdamStep{.param = five, .grad = six, .m = five, .v = five, .copy = {}},
                 "adam_step");
}

// Each change to an attention op that is good without it.
TEST(BadInput, AttentionThatDoesNotFit) {
  Workspace w(test_seed());
  const AttentionShape shape{2, 3, 4, 2, 8, 7, 4};
  AttentionForward good;
  good.shape = shape;
  good.qkv = {{w.normal(DType::f32, {6, 32}), 0, 32},
              {w.normal(DType::f32, {14, 32}), 0, 16},
              {w.normal(DType::f32, {14, 32}), 16, 16}};
  good.out = w.zeros(DType::f32, {6, 32});
  good.lse = w.zeros(DType::f32, {2, 4, 3});
  EXPECT_NO_THROW(good.validate());
  const auto refused = [&](auto&& change) {
    AttentionForward op = good;
    change(op);
    EXPECT_THROW(op.validate(), Error);
    expect_refused(op, "attention_forward: ");
    AttentionBackward backward{good.out, good.out, op.qkv,   good.lse,   good.qkv,
                               good.lse, op.shape, op.scale, op.dropout, op.mask};
    EXPECT_THROW(backward.validate(), Error);
    expect_refused(backward, "attention_backward: ");
  };
  refused([](AttentionForward& op) { op.shape.first_position = 5; });  // a query after all keys
  refused([](AttentionForward& op) { op.shape.first_position = -1; });
  refused([](AttentionForward& op) { op.shape.keys = 8; });
  refused([](AttentionForward& op) { op.shape.kv_heads = 3; });
  refused([](AttentionForward& op) { op.qkv.q.width = 31; });
  refused([](AttentionForward& op) { op.qkv.v.first = 17; });  // past the matrix
  refused([](AttentionForward& op) { op.qkv.k.first = -1; });
  refused([&](AttentionForward& op) { op.qkv.k.matrix = w.normal(DType::f32, {13, 32}); });
  refused([&](AttentionForward& op) { op.qkv.v.matrix = w.normal(DType::f64, {14, 32}); });
  refused([&](AttentionForward& op) { op.qkv.v.matrix = w.normal(DType::f32, {14, 40}); });
  refused([](AttentionForward& op) { op.mask = AttentionMask::sliding(0); });
  refused([](AttentionForward& op) { op.mask.window = 3; });
  refused([](AttentionForward& op) { op.mask = AttentionMask::padded({}); });
  refused([&](AttentionForward& op) { op.mask = AttentionMask::padded(w.integers({3}, 1, 3)); });
  refused(
      [&](AttentionForward& op) { op.mask = AttentionMask::padded(w.normal(DType::f32, {2})); });
}

TEST(BadInput, BlocksThatDoNotFit) {
  Workspace w(test_seed());
  const AttentionShape shape{2, 32, 4, 2, 8};
  AttentionForward good;
  good.shape = shape;
  good.qkv = packed_qkv(w.normal(DType::f32, {64, 64}), shape);
  good.out = w.zeros(DType::f32, {64, 32});
  good.lse = w.zeros(DType::f32, {2, 4, 32});
  good.mask = mask_of_blocks(w, shape, {dense_layout(16, 2)}, true);
  EXPECT_NO_THROW(good.validate());
  const auto refused = [&](auto&& change) {
    AttentionForward op = good;
    change(op);
    EXPECT_THROW(op.validate(), Error);
    expect_refused(op, "attention_forward: ");
  };
  refused([](AttentionForward& op) { op.mask.layouts = 2; });
  refused([](AttentionForward& op) { op.mask.blocks = {}; });
  refused([](AttentionForward& op) { op.mask.blocks.dtype = DType::f32; });
  refused([](AttentionForward& op) { op.mask.blocks.shape = Shape{3}; });
  refused([](AttentionForward& op) { op.mask.kind = AttentionMaskKind::causal; });
  refused([](AttentionForward& op) { op.shape.sequence = 31; });
  refused([&](AttentionForward& op) { op.mask.lengths = w.integers({3}, 1, 3); });
  AttentionForward cached = good;  // a query of its own, over the keys of a cache
  cached.shape = {2, 16, 4, 2, 8, 32, 16};
  EXPECT_THROW(cached.validate(), Error);
}

TEST(BadInput, PositionsBeyondTheTable) {
  Workspace w(test_seed());
  EmbeddingForward op;
  op.sequence = 4;
  op.tokens = w.integers({4}, 0, 6);
  op.wte = w.normal(DType::f32, {7, 5});
  op.wpe = w.normal(DType::f32, {6, 5});
  op.out = w.zeros(DType::f32, {4, 5});
  for (const std::int64_t first : {-1, 3}) {
    op.first_position = first;
    expect_refused(op, "first_position");
    EmbeddingBackward backward{op.tokens, op.out, op.wte, op.wpe, op.sequence, {}};
    backward.first_position = first;
    expect_refused(backward, "first_position");
  }
}

}  // namespace
}  // namespace zl::test
