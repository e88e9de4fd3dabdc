// Failures and checkpoints: the closed form beside what was drawn, the intervals beside each other.
#include "simulator/planner/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "scenarios/planner/plan.h"
#include "scenarios/planner/plan_words.h"
#include "scenarios/planner/robustness.h"

namespace zl {
namespace {

// Hours between failures, minutes to write and to restart.
constexpr sim::FailureModel kOften{.mean_between = 10'000, .write = 120, .restart = 600};

TEST(Goodput, IsWhatDrawnFailuresLeave) {
  for (const std::int64_t each : {20, 154, 900}) {  // steps of 10 s
    const double expected = sim::goodput(kOften, 10.0 * static_cast<double>(each));
    const double played = sim::played_goodput(kOften, 10, each, 20'000'000, 7);
    EXPECT_NEAR(played, expected, 0.004 * expected) << each;
  }
}

TEST(Goodput, ANumberByHand) {
  // exp(0.06) * (exp(0.112) - 1) * 10,000 s for 1,000 s of training.
  EXPECT_NEAR(sim::goodput(kOften, 1000), 1000 / (10'000 * std::exp(0.06) * (std::exp(0.112) - 1)),
              1e-12);
}

TEST(Goodput, TheBestIntervalIsTheBest) {
  for (const double write : {0.1, 20.0, 120.0, 3000.0}) {
    sim::FailureModel failures = kOften;
    failures.write = write;
    const double best = sim::best_interval(failures), share = sim::goodput(failures, best);
    EXPECT_LT(sim::goodput(failures, 1.05 * best), share) << write;
    EXPECT_LT(sim::goodput(failures, best / 1.05), share) << write;
    // Daly's series holds where writing is short beside the time between failures.
    if (write < 1000) {
      EXPECT_NEAR(sim::daly_interval(failures), best, 0.002 * best) << write;
    }
    EXPECT_GT(sim::young_interval(failures), best) << "it leaves out the second order";
    if (write <= 20) {
      EXPECT_NEAR(sim::young_interval(failures), best, 0.03 * best) << write;
    }
  }
  EXPECT_EQ(sim::daly_interval({.mean_between = 50, .write = 100}), 50);
}

TEST(Robustness, QuestionsAreReadWithTheirUnits) {
  RobustnessQuestion question;
  parse_failures("mtbf=50000h,restart=5m", question);
  parse_stragglers("1%:1.2x", question);
  EXPECT_EQ(question.mean_between_failures, 1.8e8);
  EXPECT_EQ(question.restart_seconds, 300);
  EXPECT_EQ(question.slow_share, 0.01);
  EXPECT_EQ(question.slowdown, 1.2);
  for (const char* bad :
       {"", "50000h", "mtbf=50000", "mtbf=-1h", "mtbf=1h,retry=2m", "restart=1m"}) {
    EXPECT_THROW(parse_failures(bad, question = {}), Error) << bad;
  }
  for (const char* bad : {"", "1%", "1:1.2x", "1%:1.2", "101%:2x", "1%:0.5x", "0%:2x"}) {
    EXPECT_THROW(parse_stragglers(bad, question), Error) << bad;
  }
}

TEST(Robustness, OfAPlan) {
  ScenarioOverrides overrides;
  overrides.cluster = "16xh100";
  overrides.sequence_length = 1024;
  overrides.software = "zerolab";
  PlanRequest request;
  request.scenario = plan_scenario("gpt2-774m", overrides);
  request.global_batch = 64;
  request.top = 1;
  request.limits = parse_limits("pipeline=1,tensor=1,zero=1,recompute=none");
  const Plan plan = find_plans(request).best.at(0);
  const double step = plan.result.step_time.median;

  RobustnessQuestion question;
  question.mean_between_failures = 16 * 3600;
  const Robustness fails = robustness_of(request, plan, question);
  EXPECT_EQ(fails.mean_between_failures, 3600);
  EXPECT_EQ(fails.step_seconds, step);
  // Masters and two moments in fp32, of which a node of eight ranks writes half; padding beside.
  const double state = 12.0 * static_cast<double>(request.scenario.model.parameters());
  EXPECT_NEAR(static_cast<double>(fails.checkpoint_bytes), state / 2, 0.001 * state);
  EXPECT_GT(fails.steps_between, 1);
  EXPECT_NEAR(fails.played_goodput, fails.goodput, 0.01);
  EXPECT_NEAR(fails.tokens_per_second, plan.result.tokens_per_second * fails.goodput,
              1e-9 * fails.tokens_per_second);

  // All slow in every step: as a device of half the rates; the links are as fast as before.
  question = {.slow_share = 1, .slowdown = 2};
  const double slow = robustness_of(request, plan, question).step_seconds;
  EXPECT_GT(slow, 1.6 * step);
  EXPECT_LE(slow, 2 * step);
  // One of a hundred: 1 - 0.99^16 of the steps meet one.
  question.slow_share = 0.01;
  const double some = robustness_of(request, plan, question).step_seconds;
  EXPECT_NEAR(some, step + (1 - std::pow(0.99, 16)) * (slow - step), 1e-9 * step);
}

}  // namespace
}  // namespace zl
