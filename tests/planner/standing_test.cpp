// Where a strategy stands among the plans.
#include "scenarios/planner/standing.h"

#include <gtest/gtest.h>

#include "scenarios/planner/plan.h"

namespace zl {
namespace {

PlanRequest request() {
  ScenarioOverrides overrides;
  overrides.cluster = "8xh100";
  overrides.sequence_length = 1024;
  overrides.software = "zerolab";
  PlanRequest request;
  request.scenario = plan_scenario("gpt2-774m", overrides);
  request.global_batch = 32;
  request.limits = parse_limits("offload=none");
  return request;
}

TEST(Standing, OfTheBestIsFirstAndOfAPoorOneFarBehind) {
  const PlanField field = plan_field(request());
  EXPECT_GT(field.others.size(), 100U);
  const Standing first = standing_of(field, request().scenario, field.best.strategy);
  EXPECT_NEAR(first.of_best, 1, 0.001);
  EXPECT_NE(first.fits, Fits::no);
  EXPECT_LT(first.share_faster, 0.01);

  const auto with_tensor = [&](const std::string& ranks) {
    PlanRequest poor = request();
    poor.limits = parse_limits("offload=none,pipeline=1,sequence_parallel=false,recompute=full," +
                               ("tensor=" + ranks));
    return standing_of(field, request().scenario, find_plans(poor).best.front().strategy);
  };
  const Standing cheap = with_tensor("1"), last = with_tensor("4");
  ASSERT_TRUE(cheap.share_faster_alike);
  EXPECT_LT(*cheap.share_faster_alike, cheap.share_faster) << "recomputing all is what costs";
  EXPECT_GT(last.of_best, 1.5);
  EXPECT_GT(last.share_faster, 0.3);
  const std::string why = standing_text(field, last);
  EXPECT_NE(why.find(" instead of full"), std::string::npos) << why;
  EXPECT_NE(why.find("less compute"), std::string::npos) << why;
  EXPECT_NE(why.find(" of the device free"), std::string::npos) << why;
}

}  // namespace
}  // namespace zl
