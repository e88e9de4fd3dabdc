// What stage equality rests on: optimizer ops, reductions and random values give the same bits for
// any cut of a flat range into sub-ranges (any alignment) and any harness.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/ops/op.h"
#include "tests/conformance/workspace.h"

namespace zl::test {
namespace {

constexpr std::int64_t kCount = 70001;

// [0, kCount) cut at random places, a few of them very short.
std::vector<std::int64_t> random_cuts(std::mt19937_64& random) {
  std::vector<std::int64_t> cuts = {0, kCount};
  std::uniform_int_distribution<std::int64_t> place(1, kCount - 2);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t cut = place(random);
    cuts.push_back(cut);
    if (i % 2 == 0) cuts.push_back(cut + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

// Tensors of kCount elements resident on a backend, so that ops run on unaligned pieces in place.
class Residents {
 public:
  Residents(Harness& harness, const Op& op) : harness_(harness), operands_(operands_of(op)) {
    for (const Operand& operand : operands_) {
      memory_.push_back(harness.allocate(operand.view.bytes()));
      harness.upload(memory_.back(), operand.view.data, operand.view.bytes());
    }
  }
  ~Residents() {
    for (std::byte* memory : memory_) harness_.release(memory);
  }
  // The op on elements [begin, end) of every tensor of kCount elements.
  Op piece(Op op, std::int64_t begin, std::int64_t end) const {
    remap(op, [&](const TensorView& view) {
      const TensorView moved{memory_of(view), view.dtype, view.shape};
      return view.count() == kCount ? moved.flat(begin, end - begin) : moved;
    });
    return op;
  }
  std::vector<std::vector<std::byte>> written() const {
    std::vector<std::vector<std::byte>> all;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].written) continue;
      all.emplace_back(static_cast<std::size_t>(operands_[i].view.bytes()));
      harness_.download(all.back().data(), memory_[i], operands_[i].view.bytes());
    }
    return all;
  }

 private:
  std::byte* memory_of(const TensorView& view) const {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].view.data == view.data) return memory_[i];
    }
    return nullptr;
  }
  Harness& harness_;
  std::vector<Operand> operands_;
  std::vector<std::byte*> memory_;
};

// Runs the op whole on every harness, then in pieces; adjust(op, begin) fixes what depends on the
// piece. All outputs must agree in every bit.
template <class T, class Adjust>
void expect_independent_of_cuts(Workspace& w, const T& op, Adjust&& adjust) {
  SCOPED_TRACE("ZL_TEST_SEED=" + std::to_string(test_seed()));
  std::vector<std::vector<std::byte>> whole;
  for (const auto& harness : make_harnesses()) {
    SCOPED_TRACE(harness->name());
    Residents uncut(*harness, op);
    harness->run(uncut.piece(op, 0, kCount));
    if (whole.empty()) whole = uncut.written();
    EXPECT_TRUE(uncut.written() == whole) << "whole range";
    Residents cut(*harness, op);
    const std::vector<std::int64_t> cuts = random_cuts(w.random());
    // Back to front: the order of the pieces must not matter either.
    for (std::size_t i = cuts.size() - 1; i-- > 0;) {
      T adjusted = op;
      adjust(adjusted, cuts[i], i + 2 == cuts.size());
      harness->run(cut.piece(adjusted, cuts[i], cuts[i + 1]));
    }
    EXPECT_TRUE(cut.written() == whole) << "in " << cuts.size() - 1 << " pieces";
  }
}

const auto kUnchanged = [](auto&, std::int64_t, bool) {};
// Reductions: the first piece to run writes, the others accumulate.
const auto kAccumulating = [](auto& op, std::int64_t, bool first) { op.accumulate = !first; };

class Partition : public testing::TestWithParam<DType> {
 protected:
  Workspace w{test_seed()};
  TensorView f32(double scale = 1.0) { return w.normal(DType::f32, {kCount}, scale); }
  TensorView grad() { return w.normal(GetParam(), {kCount}); }
  TensorView copy() {
    return w.zeros(GetParam() == DType::f64 ? DType::f32 : GetParam(), {kCount});
  }
};

TEST_P(Partition, AdamStep) {
  for (const bool decoupled : {true, false}) {
    const AdamStep op{.param = f32(),
                      .grad = grad(),
                      .m = f32(0.1),
                      .v = w.positive(DType::f32, {kCount}, 0.01),
                      .copy = copy(),
                      .lr = 0.01f,
                      .beta1 = 0.9f,
                      .beta2 = 0.95f,
                      .epsilon = 1e-8f,
                      .weight_decay = 0.1f,
                      .bias1 = 0.19f,
                      .bias2 = 0.0975f,
                      .grad_scale = 0.37f,
                      .decoupled = decoupled};
    expect_independent_of_cuts(w, op, kUnchanged);
  }
}

// Random words belong to elements, not to the piece that asks for them.
TEST_P(Partition, AdamStepWithStochasticRounding) {
  const AdamStep op{.param = f32(),
                    .grad = grad(),
                    .m = f32(0.1),
                    .v = w.positive(DType::f32, {kCount}, 0.01),
                    .copy = w.zeros(DType::bf16, {kCount}),
                    .lr = 0.01f,
                    .beta1 = 0.9f,
                    .beta2 = 0.95f,
                    .epsilon = 1e-8f,
                    .stochastic = true,
                    .key = {test_seed(), 3, 17},
                    .base = 1001};
  expect_independent_of_cuts(w, op, [](AdamStep& piece, std::int64_t begin, bool) {
    piece.base += static_cast<std::uint64_t>(begin);
  });
}

TEST_P(Partition, SgdStep) {
  for (const bool nesterov : {true, false}) {
    const SgdStep op{.param = f32(),
                     .grad = grad(),
                     .buf = f32(),
                     .copy = copy(),
                     .lr = 0.01f,
                     .momentum = 0.9f,
                     .weight_decay = 0.1f,
                     .grad_scale = 0.37f,
                     .nesterov = nesterov};
    expect_independent_of_cuts(w, op, kUnchanged);
  }
}

TEST_P(Partition, Lamb) {
  const LambUpdate update{.param = f32(),
                          .grad = grad(),
                          .m = f32(0.1),
                          .v = w.positive(DType::f32, {kCount}, 0.01),
                          .update = f32(),
                          .beta1 = 0.9f,
                          .beta2 = 0.95f,
                          .epsilon = 1e-6f,
                          .weight_decay = 0.1f,
                          .bias1 = 0.19f,
                          .bias2 = 0.0975f,
                          .grad_scale = 0.37f};
  expect_independent_of_cuts(w, update, kUnchanged);
  const LambApply apply{.param = f32(),
                        .update = f32(),
                        .param_square = w.positive(DType::f64, {2}),
                        .update_square = w.positive(DType::f64, {2}),
                        .copy = copy(),
                        .lr = 0.01f,
                        .min_trust = 0.01f,
                        .max_trust = 10.0f};
  expect_independent_of_cuts(w, apply, kUnchanged);
}

TEST_P(Partition, AbsMax) {
  expect_independent_of_cuts(w, AbsMax{grad(), w.zeros(DType::f32, {1})}, kAccumulating);
}

// Values over 40 binades, so that any inexact addition would show.
TEST_P(Partition, SquaredSum) {
  const TensorView x = grad();
  double largest = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    const bool small_type = GetParam() == DType::f16;
    const float low = small_type ? -14.0f : -30.0f;
    set(x, i, get(x, i) * std::exp2(w.uniform(low, small_type ? 4.0f : 10.0f)));
    largest = std::max(largest, std::abs(get(x, i)));
  }
  const TensorView bound = w.zeros(DType::f32, {1});
  set(bound, 0, largest * 1.0001);
  expect_independent_of_cuts(w, SquaredSum{x, bound, w.zeros(DType::f64, {2}), kCount},
                             kAccumulating);
}

TEST_P(Partition, RandomNormal) {
  const DropoutSpec random = w.dropout(0);
  const RandomNormal op{grad(), 0.02, random.key, random.base};
  expect_independent_of_cuts(w, op, [](RandomNormal& piece, std::int64_t begin, bool) {
    piece.base += static_cast<std::uint64_t>(begin);
  });
}

TEST_P(Partition, Dropout) {
  const Dropout op{grad(), grad(), w.dropout(0.3f)};
  expect_independent_of_cuts(w, op, [](Dropout& piece, std::int64_t begin, bool) {
    piece.spec.base += static_cast<std::uint64_t>(begin);
  });
}

TEST_P(Partition, Axpy) {
  for (const bool accumulate : {true, false}) {
    expect_independent_of_cuts(w, Axpy{grad(), f32(), 0.37, accumulate}, kUnchanged);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Partition,
                         testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& p) { return name_of(p.param); });

// The two-level sum loses less than 2^-50 of the true sum of squares for ordinary data.
TEST(SquaredSumAccuracy, CloseToLongDouble) {
  Workspace w(test_seed());
  const TensorView x = w.normal(DType::f32, {kCount});
  long double exact = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < kCount; ++i) {
    exact += static_cast<long double>(get(x, i)) * static_cast<long double>(get(x, i));
    largest = std::max(largest, std::abs(get(x, i)));
  }
  const TensorView bound = w.zeros(DType::f32, {1}), out = w.zeros(DType::f64, {2});
  set(bound, 0, largest);
  run_on(*make_harnesses().front(), SquaredSum{x, bound, out, kCount});
  const double got = get(out, 0) + get(out, 1);
  EXPECT_NEAR(got, static_cast<double>(exact), static_cast<double>(exact) * 0x1p-50);
}

TEST(SquaredSumAccuracy, NonFiniteBoundGivesInfinity) {
  Workspace w(test_seed());
  const TensorView bound = w.zeros(DType::f32, {1}), out = w.zeros(DType::f64, {2});
  for (const double value : {HUGE_VAL, std::nan("")}) {
    set(bound, 0, value);
    run_on(*make_harnesses().front(), SquaredSum{w.normal(DType::f32, {5}), bound, out, 5});
    EXPECT_EQ(get(out, 0), std::numeric_limits<double>::infinity());
  }
}

// f64: the f32 result must still bound every element.
TEST(AbsMaxOfDouble, RoundsUp) {
  Workspace w(test_seed());
  const TensorView x = w.normal(DType::f64, {1}), out = w.zeros(DType::f32, {1});
  for (int i = 0; i < 100; ++i) {
    set(x, 0, w.uniform(-1, 1) * (1 + 1e-12));
    run_on(*make_harnesses().front(), AbsMax{x, out});
    EXPECT_GE(get(out, 0), std::abs(get(x, 0)));
  }
}

// First four moments of 70001 draws: mean 0, variance 1, skewness 0, kurtosis 3 (six sigma).
TEST(RandomNormalMoments, AreThoseOfTheNormal) {
  Workspace w(test_seed());
  const TensorView x = w.zeros(DType::f64, {kCount});
  run_on(*make_harnesses().front(), RandomNormal{x, 1.0, w.dropout(0).key, 0});
  double moments[5] = {};
  for (std::int64_t i = 0; i < kCount; ++i) {
    for (int k = 1; k <= 4; ++k) moments[k] += std::pow(get(x, i), k) / kCount;
  }
  const double sigma = 1.0 / std::sqrt(static_cast<double>(kCount));
  EXPECT_NEAR(moments[1], 0, 6 * sigma);
  EXPECT_NEAR(moments[2], 1, 6 * std::sqrt(2.0) * sigma);
  EXPECT_NEAR(moments[3], 0, 6 * std::sqrt(15.0) * sigma);
  EXPECT_NEAR(moments[4], 3, 6 * std::sqrt(96.0) * sigma);
}

}  // namespace
}  // namespace zl::test
