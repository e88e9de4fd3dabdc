// 1-bit Adam: a golden trajectory of DeepSpeed's arithmetic, the automatic freeze, and what is
// refused.
#include "core/optim/onebit_adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/world.h"
#include "core/ops/elementwise.h"

namespace zl::test {
namespace {

OptimizerConfig onebit(std::int64_t freeze_step) {
  OptimizerConfig s;
  s.kind = OptimizerKind::onebit_adam;
  s.lr = 0.1;
  s.onebit.freeze_step = freeze_step;
  return s;
}

// One parameter of `count` elements, all `start`, on one rank.
class OneParameter {
 public:
  OneParameter(RankContext& context, const OptimizerConfig& config, std::int64_t count,
               double start)
      : context_(context), partition_(std::vector<std::int64_t>{count}, 1, 0), config_(config) {
    const auto tensor = [&](double value) {
      Tensor one = context.allocate(DType::f32, Shape{count}, MemoryTag::parameter, {"test"});
      context.run(Fill{one, value});
      return one;
    };
    param_ = tensor(start);
    gradient_ = tensor(0);
    optimizer_ =
        make_optimizer(context, config, {{param_, gradient_, 0}}, true, partition_, gradient_, {});
  }

  double step(double gradient) {
    context_.run(Fill{gradient_, gradient});
    optimizer_->step({config_.lr, config_.beta1, config_.beta2, 1.0});
    return static_cast<double>(*param_.view.as<float>());
  }
  const OnebitAdam& onebit() const { return dynamic_cast<const OnebitAdam&>(*optimizer_); }

 private:
  RankContext& context_;
  Partition partition_;
  Tensor param_, gradient_;
  std::unique_ptr<Optimizer> optimizer_;
  OptimizerConfig config_;
};

void on_one_rank(const std::function<void(RankContext&)>& program) {
  cpu::make_world({.ranks = 1, .threads_per_rank = 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    program(context);
  });
}

TEST(OnebitAdam, DeepSpeedsTrajectoryWithItsQuirks) {
  on_one_rank([](RankContext& context) {
    OptimizerConfig s = onebit(4);
    s.onebit.deepspeed_compat = true;
    OneParameter one(context, s, 1, 1.0);
    const double golden[] = {1, .68377, .25881, -.23621, -.8644, -1.61243};
    for (int i = 0; i < 6; ++i) {
      // 1 - beta2 in f32 is off by 1.3e-5.
      EXPECT_NEAR(one.step(1.0), golden[i], 2e-5) << "step " << i + 1;
      EXPECT_EQ(one.onebit().averages_gradients(), i < 3) << "step " << i + 1;
      EXPECT_EQ(one.onebit().steps(), i + 1);
    }
  });
}

// Without the quirks: no gradient is dropped, biases are corrected, the second moment's as of its
// last update. Constant gradients of 1 then give m / bias1 = v / bias2 = 1, a step of lr each.
TEST(OnebitAdam, CorrectsBiasesAndDropsNoGradient) {
  on_one_rank([](RankContext& context) {
    OneParameter one(context, onebit(3), 1, 1.0);
    for (int i = 1; i <= 8; ++i) {
      EXPECT_NEAR(one.step(1.0), 1.0 - 0.1 * i, 1e-5);
      EXPECT_EQ(one.onebit().frozen(), i >= 3);
    }
    // A gradient of 9 now moves m but not v.
    const double t = 9, m = 0.9 * (1 - std::pow(0.9, 8)) + 0.1 * 9;
    EXPECT_NEAR(one.step(9.0), 0.2 - 0.1 * m / (1 - std::pow(0.9, t)), 1e-5);
  });
}

TEST(OnebitAdam, FreezesByItselfWhenTheVarianceIsStable) {
  on_one_rank([](RankContext& context) {
    OptimizerConfig s = onebit(1000);
    s.onebit.automatic_freeze = true;
    s.beta2 = 0.9;  // checks every 10 steps
    OneParameter one(context, s, 4, 1.0);
    // v / bias2 is the mean square of gradients 1, 2, 1, 2, ...: stable from the start; the first
    // check has nothing to compare with.
    for (int i = 1; i <= 25; ++i) {
      one.step(i % 2 ? 1.0 : 2.0);
      EXPECT_EQ(one.onebit().frozen_at(), i < 20 ? 0 : 20) << i;
    }
    OneParameter falling(context, s, 4, 1.0);
    for (int i = 1; i <= 200; ++i) {
      falling.step(std::pow(0.95, std::min(i, 100)));  // falls, and is stable after step 100
      EXPECT_FALSE(i <= 100 && falling.onebit().frozen()) << i;
    }
    EXPECT_GT(falling.onebit().frozen_at(), 110);
    EXPECT_LT(falling.onebit().frozen_at(), 200);
  });
}

}  // namespace
}  // namespace zl::test
