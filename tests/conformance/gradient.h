// Backward ops against central differences of their forward ops, through the f64 path.
// Ownership: a fixture owns its tensors. Threads: used by one thread.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "core/ops/op.h"
#include "tests/conformance/workspace.h"

namespace zl::test {

class Gradient : public testing::Test {
 protected:
  Gradient() : w(test_seed()), harness_(std::move(make_harnesses().back())) {
    RecordProperty("seed", std::to_string(test_seed()));
  }

  void run(const Op& op) { run_on(*harness_, op); }
  TensorView normal(const Shape& shape) { return w.normal(DType::f64, shape); }
  TensorView zeros(const Shape& shape) { return w.zeros(DType::f64, shape); }
  static double dot(const TensorView& a, const TensorView& b) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.count(); ++i) sum += get(a, i) * get(b, i);
    return sum;
  }

  // d loss / d input at up to 40 random elements, compared with `gradient`.
  template <class Loss>
  void check(const char* what, Loss&& loss, const TensorView& input, const TensorView& gradient) {
    ASSERT_EQ(input.count(), gradient.count());
    constexpr double kStep = 1e-5;
    std::uniform_int_distribution<std::int64_t> pick(0, input.count() - 1);
    for (int trial = 0; trial < 40; ++trial) {
      const std::int64_t i = pick(w.random());
      const double x = get(input, i);
      set(input, i, x + kStep);
      const double above = loss();
      set(input, i, x - kStep);
      const double below = loss();
      set(input, i, x);
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(get(gradient, i), expected, 2e-7 * (1 + std::abs(expected)))
          << what << ", element " << i << ", ZL_TEST_SEED=" << test_seed();
    }
  }

  Workspace w;

 private:
  std::unique_ptr<Harness> harness_;
};

}  // namespace zl::test
