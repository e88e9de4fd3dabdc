// The optimizer's kernels give the CPU's bits: what --backend cuda and --backend cpu do to equal
// gradients is equal, for any gradient and copy type and any alignment.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/ops/ops.h"
#include "core/ops/elementwise.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/optimizer.h"
#include "tests/conformance/workspace.h"

namespace zl::test {
namespace {

constexpr std::int64_t kCount = 4099;

// Runs `op` by the CPU backend and by every harness on equal tensors; all outputs agree in every
// bit.
template <class T>
void expect_cpu_bits(Workspace& w, const T& op) {
  const std::vector<Operand> operands = operands_of(op);
  std::vector<TensorView> before, want;
  for (const Operand& operand : operands) before.push_back(w.copy(operand.view));
  const auto restore = [&] {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::memcpy(operands[i].view.data, before[i].data,
                  static_cast<std::size_t>(before[i].bytes()));
    }
  };
  cpu::execute(op, cpu::ExecContext{1});
  for (const Operand& operand : operands) want.push_back(w.copy(operand.view));
  for (const auto& harness : make_harnesses()) {
    restore();
    harness->run(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      EXPECT_EQ(0, std::memcmp(operands[i].view.data, want[i].data,
                               static_cast<std::size_t>(want[i].bytes())))
          << T::kName << ", operand " << i << ", " << harness->name();
    }
  }
}

// Tensors of kCount elements that start `offset` elements into their memory.
class OptimizerBits : public testing::TestWithParam<std::int64_t> {
 protected:
  Workspace w{test_seed()};
  TensorView at_offset(const TensorView& whole) const { return whole.flat(GetParam(), kCount); }
  TensorView normal(DType dtype, double scale = 1.0) {
    return at_offset(w.normal(dtype, {kCount + GetParam()}, scale));
  }
  TensorView positive(double scale) {
    return at_offset(w.positive(DType::f32, {kCount + GetParam()}, scale));
  }
  TensorView copy(DType dtype) { return at_offset(w.zeros(dtype, {kCount + GetParam()})); }

  // Every gradient type once, with each kind of copy in turn.
  template <class F>
  void for_types(F&& f) {
    f(normal(DType::f64), TensorView{});
    f(normal(DType::f32), copy(DType::bf16));
    f(normal(DType::bf16), copy(DType::f16));
    f(normal(DType::f16), copy(DType::f32));
    f(normal(DType::bf16), copy(DType::bf16));
  }
};

TEST_P(OptimizerBits, Adam) {
  for_types([&](const TensorView& grad, const TensorView& copied) {
    for (const bool decoupled : {true, false}) {
      expect_cpu_bits(w, AdamStep{.param = normal(DType::f32),
                                  .grad = grad,
                                  .m = normal(DType::f32, 0.1),
                                  .v = positive(0.01),
                                  .copy = copied,
                                  .lr = w.uniform(1e-4f, 1e-1f),
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .epsilon = 1e-8f,
                                  .weight_decay = 0.1f,
                                  .bias1 = w.uniform(0.1f, 1),
                                  .bias2 = w.uniform(0.05f, 1),
                                  .grad_scale = w.uniform(0.1f, 2),
                                  .decoupled = decoupled});
    }
  });
}

TEST_P(OptimizerBits, AdamWithStochasticRounding) {
  for (const DType grad : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    expect_cpu_bits(w, AdamStep{.param = normal(DType::f32),
                                .grad = normal(grad),
                                .m = normal(DType::f32, 0.1),
                                .v = positive(0.01),
                                .copy = copy(DType::bf16),
                                .lr = 0.01f,
                                .beta1 = 0.9f,
                                .beta2 = 0.95f,
                                .epsilon = 1e-8f,
                                .stochastic = true,
                                .key = {test_seed(), 7, 0x80000003u},
                                .base = 5 + static_cast<std::uint64_t>(GetParam())});
  }
}

TEST_P(OptimizerBits, Sgd) {
  for_types([&](const TensorView& grad, const TensorView& copied) {
    for (const int form : {0, 1, 2, 3}) {
      SgdStep op{.param = normal(DType::f32), .grad = grad, .buf = {}, .copy = copied};
      op.lr = w.uniform(1e-3f, 1e-1f);
      op.momentum = form == 0 ? 0.0f : 0.9f;
      if (form != 0) op.buf = normal(DType::f32);
      op.weight_decay = 0.1f;
      op.grad_scale = w.uniform(0.1f, 2);
      op.nesterov = form == 2;
      op.first = form == 3;
      expect_cpu_bits(w, op);
    }
  });
}

TEST_P(OptimizerBits, Lamb) {
  for_types([&](const TensorView& grad, const TensorView& copied) {
    expect_cpu_bits(w, LambUpdate{.param = normal(DType::f32),
                                  .grad = grad,
                                  .m = normal(DType::f32, 0.1),
                                  .v = positive(0.01),
                                  .update = normal(DType::f32),
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .epsilon = 1e-6f,
                                  .weight_decay = 0.1f,
                                  .bias1 = w.uniform(0.1f, 1),
                                  .bias2 = w.uniform(0.05f, 1),
                                  .grad_scale = w.uniform(0.1f, 2)});
    expect_cpu_bits(w, LambApply{.param = normal(DType::f32),
                                 .update = normal(DType::f32),
                                 .param_square = w.positive(DType::f64, {2}),
                                 .update_square = w.positive(DType::f64, {2}),
                                 .copy = copied,
                                 .lr = 0.01f,
                                 .min_trust = 0.01f,
                                 .max_trust = 10.0f});
  });
}

// The factor is found on the device; an update takes it as f32.
TEST_P(OptimizerBits, ClippingOnTheDevice) {
  for (const double max_norm : {0.25, 1e3}) {
    expect_cpu_bits(w, ClipFactor{.parts = w.positive(DType::f64, {2}, 40),
                                  .sum = w.zeros(DType::f64, {1}),
                                  .factor = w.zeros(DType::f64, {1}),
                                  .gradients = 3,
                                  .loss_scale = 1024,
                                  .unscale = 1.0 / 1024,
                                  .max_norm = max_norm / 1024});
  }
  const TensorView factor = w.positive(DType::f64, {1});
  for_types([&](const TensorView& grad, const TensorView& copied) {
    expect_cpu_bits(w, AdamStep{.param = normal(DType::f32),
                                .grad = grad,
                                .m = normal(DType::f32, 0.1),
                                .v = positive(0.01),
                                .copy = copied,
                                .lr = 0.01f,
                                .beta1 = 0.9f,
                                .beta2 = 0.95f,
                                .epsilon = 1e-8f,
                                .factor = factor});
    expect_cpu_bits(w, SgdStep{.param = normal(DType::f32),
                               .grad = grad,
                               .buf = {},
                               .copy = copied,
                               .lr = 0.01f,
                               .factor = factor});
    expect_cpu_bits(w, LambUpdate{.param = normal(DType::f32),
                                  .grad = grad,
                                  .m = normal(DType::f32, 0.1),
                                  .v = positive(0.01),
                                  .update = normal(DType::f32),
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .epsilon = 1e-6f,
                                  .factor = factor});
    expect_cpu_bits(
        w, MomentumStep{.m = normal(DType::f32), .grad = grad, .beta1 = 0.9f, .factor = factor});
    expect_cpu_bits(w, Axpy{.x = grad, .y = normal(DType::f32), .factor = factor});
  });
}

TEST_P(OptimizerBits, ExactReductions) {
  for_types([&](const TensorView& x, const TensorView&) {
    for (const bool accumulate : {false, true}) {
      const TensorView bound = w.zeros(DType::f32, {1});
      expect_cpu_bits(w, AbsMax{x, w.positive(DType::f32, {1}, 3.0), accumulate});
      cpu::execute(AbsMax{x, bound}, cpu::ExecContext{1});
      expect_cpu_bits(w, SquaredSum{x, bound, w.zeros(DType::f64, {2}), kCount, accumulate});
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Offsets, OptimizerBits, testing::Values(0, 1, 4));

}  // namespace
}  // namespace zl::test
