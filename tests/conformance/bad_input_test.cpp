// What ops refuse, on every harness: with a message that names the op and the value.
#include <gtest/gtest.h>

#include "core/ops/op.h"
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

}  // namespace
}  // namespace zl::test
