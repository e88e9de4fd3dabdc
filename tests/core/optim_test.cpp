// LR schedules and the loss scaler against golden vectors of DeepSpeed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/optim/loss_scaler.h"
#include "core/optim/lr_schedule.h"

namespace zl {
namespace {

// Equal to 6 significant digits, the precision of the golden vectors.
void expect_lrs(LrSchedule schedule, const std::vector<double>& golden) {
  for (std::size_t step = 0; step < golden.size(); ++step) {
    EXPECT_NEAR(schedule.lr(), golden[step], 1e-6 * std::abs(golden[step])) << "step " << step + 1;
    schedule.step();
  }
}

ScheduleConfig warmup(ScheduleKind kind, bool log, std::int64_t total) {
  ScheduleConfig config;
  config.kind = kind;
  config.warmup_max_lr = 1.0;
  config.warmup_num_steps = 4;
  config.warmup_log = log;
  config.total_num_steps = total;
  return config;
}

ScheduleConfig one_cycle() {
  ScheduleConfig config;
  config.kind = ScheduleKind::one_cycle;
  config.cycle_min_lr = 0.1;
  config.cycle_max_lr = 1.0;
  config.cycle_first_step_size = 2;
  config.decay_step_size = 1;
  config.decay_lr_rate = 1.0;
  return config;
}

TEST(LrSchedule, ConstantIsTheOptimizersRate) {
  OptimizerConfig optimizer;
  optimizer.lr = 0.25;
  LrSchedule schedule({}, optimizer);
  expect_lrs(schedule, {0.25, 0.25, 0.25});
  EXPECT_FALSE(schedule.beta1().has_value());
  EXPECT_FALSE(schedule.beta2().has_value());
}

TEST(LrSchedule, WarmupLog) {
  expect_lrs(LrSchedule(warmup(ScheduleKind::warmup_lr, true, 0), {}),
             {0, 0, 0.5, 0.792481250, 1, 1, 1});
}

TEST(LrSchedule, WarmupLinear) {
  expect_lrs(LrSchedule(warmup(ScheduleKind::warmup_lr, false, 0), {}),
             {0, 0, 0.25, 0.5, 0.75, 1, 1});
}

TEST(LrSchedule, WarmupStartsAtTheMinimumAndTakesAtLeastTwoSteps) {
  ScheduleConfig config = warmup(ScheduleKind::warmup_lr, false, 0);
  config.warmup_min_lr = 0.5;
  for (const std::int64_t steps : {0, 1, 2}) {
    config.warmup_num_steps = steps;
    expect_lrs(LrSchedule(config, {}), {0.5, 0.5, 0.75, 1, 1});
  }
}

TEST(LrSchedule, WarmupDecay) {
  expect_lrs(LrSchedule(warmup(ScheduleKind::warmup_decay_lr, false, 10), {}),
             {0, 0, 0.25, 0.5, 0.75, 1, 5.0 / 6, 4.0 / 6, 0.5, 2.0 / 6, 1.0 / 6, 0, 0});
}

TEST(LrSchedule, WarmupCosine) {
  OptimizerConfig optimizer;
  optimizer.lr = 1e-3;
  expect_lrs(LrSchedule(warmup(ScheduleKind::warmup_cosine_lr, false, 10), optimizer),
             {0, 0, 2.5e-4, 5e-4, 7.5e-4, 9.33019e-4, 7.50025e-4, 5.0005e-4, 2.50075e-4, 6.70806e-5,
              1e-7, 1e-7});
}

TEST(LrSchedule, WarmupCosineRunsItsFirstStepAtZeroWhateverTheMinimumRatio) {
  ScheduleConfig config = warmup(ScheduleKind::warmup_cosine_lr, false, 10);
  config.warmup_min_ratio = 0.5;
  OptimizerConfig optimizer;
  optimizer.lr = 2.0;
  expect_lrs(LrSchedule(config, optimizer), {0, 1, 1.25, 1.5, 1.75});
}

TEST(LrSchedule, OneCycle) {
  expect_lrs(LrSchedule(one_cycle(), {}), {.1, .55, 1, .55, .1, .05, .1 / 3, .025, .02});
}

TEST(LrSchedule, OneCycleWithUnequalHalvesAndNoDecay) {
  ScheduleConfig config = one_cycle();
  config.cycle_second_step_size = 3;
  config.decay_step_size = 0;
  expect_lrs(LrSchedule(config, {}), {.1, .55, 1, .7, .4, .1, .1, .1});
}

// DeepSpeed 0.19.8's rates of cycles of 6 + 6 and 6 + 4 steps, in units of 1e-4.
TEST(LrSchedule, OneCycleTakesStairs) {
  ScheduleConfig config = one_cycle();
  config.cycle_min_lr = 1e-4;
  config.cycle_max_lr = 1e-3;
  config.cycle_first_step_size = 6;
  config.cycle_first_stair_count = config.cycle_second_stair_count = 3;
  expect_lrs(LrSchedule(config, {}),
             {1e-4, 1e-4, 4e-4, 4e-4, 7e-4, 7e-4, 1e-3, 7e-4, 7e-4, 4e-4, 4e-4, 1e-4, 1e-4});
  config.cycle_second_step_size = 4;
  config.cycle_second_stair_count = 2;
  expect_lrs(LrSchedule(config, {}),
             {1e-4, 1e-4, 4e-4, 4e-4, 7e-4, 7e-4, 1e-3, 5.5e-4, 5.5e-4, 1e-4, 1e-4});
}

// Its first step alone takes the momentum of the peak, as DeepSpeed's does.
TEST(LrSchedule, OneCycleMomentumRunsInversely) {
  ScheduleConfig config = one_cycle();
  config.decay_mom_rate = 0.5;
  LrSchedule schedule(config, {});
  for (const double golden : {.8, .85, .8, .85, .9, .9 * 1.5, .9 * 2.0}) {
    ASSERT_TRUE(schedule.beta1().has_value());
    EXPECT_NEAR(*schedule.beta1(), golden, 1e-12);
    EXPECT_EQ(schedule.beta2(), 0.99);
    schedule.step();
  }
  config.cycle_momentum = false;
  EXPECT_FALSE(LrSchedule(config, {}).beta1().has_value());
  EXPECT_FALSE(LrSchedule(config, {}).beta2().has_value());
}

TEST(LrSchedule, RangeTest) {
  ScheduleConfig config;
  config.kind = ScheduleKind::lr_range_test;
  config.lr_range_test_min_lr = 1.0;
  config.lr_range_test_step_size = 2;
  expect_lrs(LrSchedule(config, {}), {1, 1.5, 2, 2.5, 3});
  config.lr_range_test_staircase = true;
  expect_lrs(LrSchedule(config, {}), {1, 1, 2, 2, 3});
}

// torch.optim.lr_scheduler.ExponentialLR, of which DeepSpeed's first update has the base rate.
TEST(LrSchedule, Exponential) {
  ScheduleConfig config;
  config.kind = ScheduleKind::exponential;
  config.gamma = 0.5;
  OptimizerConfig optimizer;
  optimizer.lr = 0.25;
  expect_lrs(LrSchedule(config, optimizer), {0.25, 0.125, 0.0625, 0.03125});
}

TEST(LrSchedule, TheIndexIsTheWholeState) {
  const ScheduleConfig config = warmup(ScheduleKind::warmup_decay_lr, true, 10);
  LrSchedule original(config, {});
  EXPECT_EQ(original.index(), -1);
  for (int i = 0; i < 6; ++i) original.step();
  LrSchedule restored(config, {});
  restored.restore(original.index());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(restored.lr(), original.lr());
    original.step();
    restored.step();
  }
}

void expect_schedule_error(const ScheduleConfig& config, const std::string& key) {
  try {
    LrSchedule schedule(config, {});
    FAIL() << "accepted a bad " << key;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(std::string(error.what()).find("scheduler.params." + key), std::string::npos)
        << error.what();
  }
}

TEST(LrSchedule, RejectsBadStepCounts) {
  ScheduleConfig config = warmup(ScheduleKind::warmup_lr, true, 0);
  config.warmup_num_steps = -1;
  expect_schedule_error(config, "warmup_num_steps");
  expect_schedule_error(warmup(ScheduleKind::warmup_decay_lr, true, 0), "total_num_steps");
  expect_schedule_error(warmup(ScheduleKind::warmup_cosine_lr, true, -1), "total_num_steps");
  config = one_cycle();
  config.cycle_first_step_size = 0;
  expect_schedule_error(config, "cycle_first_step_size");
  config = one_cycle();
  config.decay_step_size = -1;
  expect_schedule_error(config, "decay_step_size");
  config = {};
  config.kind = ScheduleKind::lr_range_test;
  config.lr_range_test_step_size = 0;
  expect_schedule_error(config, "lr_range_test_step_size");
}

// '.' is a good step, 'X' an overflow; the scale after each is compared exactly.
void expect_scales(const LossScalerConfig& config, const std::string& events,
                   const std::vector<double>& golden) {
  ASSERT_EQ(events.size(), golden.size());
  LossScaler scaler(config, true);
  for (std::size_t i = 0; i < events.size(); ++i) {
    scaler.update(events[i] == 'X');
    EXPECT_EQ(scaler.scale(), golden[i]) << "after event " << i + 1 << " of " << events;
  }
}

LossScalerConfig window_of_two() {
  LossScalerConfig config;
  config.window = 2;
  return config;
}

TEST(LossScaler, GrowsAfterWindows) {
  expect_scales(window_of_two(), ".......", {65536, 65536, 131072, 131072, 262144, 262144, 524288});
}

TEST(LossScaler, HysteresisAbsorbsTheFirstOverflowOnly) {
  expect_scales(window_of_two(), "XX..X.X", {65536, 32768, 32768, 32768, 16384, 16384, 8192});
}

TEST(LossScaler, GrowthRefillsTheHysteresis) {
  // k: 2, 1 (X), halve (X), good x3 -> growth refills k to 2, so the next X is absorbed.
  expect_scales(window_of_two(), "XX...XX", {65536, 32768, 32768, 32768, 65536, 65536, 32768});
}

TEST(LossScaler, ConsecutiveHysteresisRefillsAfterEachGoodStep) {
  LossScalerConfig config = window_of_two();
  config.consecutive_hysteresis = true;
  expect_scales(config, "X.X.XX", {65536, 65536, 65536, 65536, 65536, 32768});
}

TEST(LossScaler, FailsAtTheMinimumNamingTheKeyAndLeavingTheStateAlone) {
  LossScalerConfig config;
  config.initial_scale_power = 1;
  config.hysteresis = 1;
  LossScaler scaler(config, true);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1.0);
  try {
    scaler.update(true);
    FAIL() << "fell below the minimum";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed);
    const std::string message = error.what();
    EXPECT_NE(message.find("loss_scale: already at minimum"), std::string::npos) << message;
    EXPECT_NE(message.find("min_loss_scale = 1)"), std::string::npos) << message;
    EXPECT_NE(message.find("learning rate"), std::string::npos) << message;
  }
  EXPECT_EQ(scaler.scale(), 1.0);
  EXPECT_EQ(scaler.state().iteration, 1);
}

TEST(LossScaler, HalvingStopsAtAMinimumThatIsNoPowerOfTwo) {
  LossScalerConfig config;
  config.initial_scale_power = 3;
  config.hysteresis = 1;
  config.min_scale = 3.0;
  expect_scales(config, "XX", {4, 3});
}

// As DeepSpeed's: what is counted down to 1 begins below it.
TEST(LossScaler, WithoutHysteresisTheScaleNeverFalls) {
  LossScalerConfig config = window_of_two();
  config.hysteresis = 0;
  expect_scales(config, "XXXX...X", {65536, 65536, 65536, 65536, 65536, 65536, 131072, 131072});
}

TEST(LossScaler, AMinimumOfZeroIsNone) {
  LossScalerConfig config;
  config.initial_scale_power = 0;
  config.hysteresis = 1;
  config.min_scale = 0;
  expect_scales(config, "XXX", {0.5, 0.25, 0.125});
}

TEST(LossScaler, StaticScaleNeverMoves) {
  LossScalerConfig config;
  config.static_scale = 128.0;
  for (const bool dynamic : {true, false}) {
    LossScaler scaler(config, dynamic);
    for (int i = 0; i < 5000; ++i) scaler.update(i % 3 == 0);
    EXPECT_EQ(scaler.scale(), 128.0);
  }
  EXPECT_EQ(LossScaler({}, false).scale(), 1.0);
}

TEST(LossScaler, RestoredStateContinuesAlike) {
  LossScaler original(window_of_two(), true);
  for (const char event : std::string("X..X")) original.update(event == 'X');
  LossScaler restored(window_of_two(), true);
  restored.restore(original.state());
  for (const char event : std::string("...X..XX....")) {
    original.update(event == 'X');
    restored.update(event == 'X');
    EXPECT_EQ(restored.scale(), original.scale());
  }
}

void expect_scaler_error(const LossScalerConfig& config, const std::string& key) {
  try {
    LossScaler scaler(config, true);
    FAIL() << "accepted a bad " << key;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(std::string(error.what()).find("fp16." + key + ":"), std::string::npos)
        << error.what();
  }
}

TEST(LossScaler, RejectsBadValues) {
  LossScalerConfig config;
  config.static_scale = -1;
  expect_scaler_error(config, "loss_scale");
  config = {};
  config.static_scale = INFINITY;
  expect_scaler_error(config, "loss_scale");
  config = {};
  config.window = 0;
  expect_scaler_error(config, "loss_scale_window");
  config = {};
  config.hysteresis = -1;
  expect_scaler_error(config, "hysteresis");
  config = {};
  config.min_scale = -1;
  expect_scaler_error(config, "min_loss_scale");
  config = {};
  config.initial_scale_power = 1000;
  expect_scaler_error(config, "initial_scale_power");
}

}  // namespace
}  // namespace zl
