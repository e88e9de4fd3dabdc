// Schedules are data: what they hold, how many micro-batches are on their way.
#include "core/pipeline/schedule.h"

#include <gtest/gtest.h>

namespace zl {
namespace {

using Kind = InstructionKind;

TEST(Schedule, AWholeModelTakesOneMicroBatchAfterTheOther) {
  const Schedule schedule = whole_model_schedule(7);
  EXPECT_EQ(schedule.repeats * schedule.micro_batches, 7);
  EXPECT_EQ(schedule.in_flight(), 1);
  EXPECT_EQ(schedule.body,
            (std::vector<Instruction>{{Kind::load}, {Kind::forward}, {Kind::backward}}));
}

TEST(Schedule, CountsWhatIsOnItsWay) {
  const Schedule gpipe{.body = {{Kind::load, 0},
                                {Kind::forward, 0},
                                {Kind::load, 1},
                                {Kind::forward, 1},
                                {Kind::load, 2},
                                {Kind::forward, 2},
                                {Kind::backward, 2},
                                {Kind::backward, 1},
                                {Kind::backward, 0}},
                       .micro_batches = 3};
  EXPECT_EQ(gpipe.in_flight(), 3);
  const Schedule one_ahead{.body = {{Kind::load, 0},
                                    {Kind::forward, 0},
                                    {Kind::load, 1},
                                    {Kind::forward, 1},
                                    {Kind::backward, 0},
                                    {Kind::load, 2},
                                    {Kind::forward, 2},
                                    {Kind::backward, 1},
                                    {Kind::backward, 2}},
                           .micro_batches = 3};
  EXPECT_EQ(one_ahead.in_flight(), 2);
}

}  // namespace
}  // namespace zl
