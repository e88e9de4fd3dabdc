// How a search goes on changes neither what it finds nor how soon it finds something useful.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scenarios/planner/plan.h"
#include "tests/planner/requests.h"

namespace zl {
namespace {

using test::small_request;

std::string plans_of(const PlanRequest& request) {
  std::string text;
  for (const Plan& plan : find_plans(request).best) {
    text += plan.strategy.strategy.name + " " + std::to_string(plan.result.step_time.median) + "\n";
  }
  return text;
}

TEST(PlanSearch, FindsTheSameHoweverManyAreJudgedAtOnce) {
  for (const char* limits :
       {"micro_batch<=2,tensor<=2", "pipeline=2,tensor=1,schedule=1f1b,recompute=none"}) {
    PlanRequest request = small_request(8, 8, 32);
    request.limits = parse_limits(limits);
    request.top = 30;
    const std::string expected = plans_of(request);
    for (const std::size_t at_once : {1, 7, 1000}) {
      request.judged_at_once = at_once;
      EXPECT_EQ(plans_of(request), expected) << limits << ", " << at_once << " at once";
    }
  }
}

// One that recomputes as few blocks as fit is as soon at hand as one that recomputes all.
TEST(PlanSearch, TriesToRecomputeAsLittleAsFitsFromTheStart) {
  const sim::PlanSpace likely = likely_part(plan_space(small_request(8, 8, 32)));
  EXPECT_TRUE(likely.has(RecomputeMode::automatic));
}

}  // namespace
}  // namespace zl
