#include "simulator/step_accounts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kWire;
using test::TraceBuilder;
using Parts = std::array<std::int64_t, 6>;

Parts parts_of(const StepPrice& step) {
  return {step.compute, step.exposed_communication, step.optimizer, step.offload_stall, step.bubble,
          step.host};
}

struct Work {
  StreamId stream;
  bool communicates;
  EventTime time;
};

// Streams in order, in steps of a unit; gaps and overlaps at random.
std::vector<Work> random_work(std::mt19937& random) {
  std::vector<Work> all;
  for (const StreamId stream : {kMain, kWire, StreamId::copy_in, StreamId::host}) {
    std::int64_t now = 0;
    for (int i = 0; i < 8; ++i) {
      now += random() % 4;
      const std::int64_t end = now + random() % 5;
      all.push_back({stream, stream == kWire, {now, end}});
      now = end;
    }
  }
  return all;
}

bool runs_at(const EventTime& time, std::int64_t now) {
  return time.start <= now && now < time.end;
}

// Unit by unit, by definition.
Parts brute_force(const std::vector<Work>& all, const std::vector<EventTime>& held,
                  std::int64_t end) {
  Parts parts{};
  for (std::int64_t now = 0; now < end; ++now) {
    const auto any = [&](auto&& is) {
      return std::any_of(all.begin(), all.end(), [&](const Work& work) {
        return runs_at(work.time, now) && is(work.stream);
      });
    };
    const bool waits = std::any_of(held.begin(), held.end(),
                                   [&](const EventTime& time) { return runs_at(time, now); });
    if (any([](StreamId stream) { return stream == kMain; })) {
      ++parts[0];
    } else if (any([](StreamId stream) { return stream == kWire; })) {
      ++parts[1];
    } else if (waits) {
      ++parts[4];
    } else if (any([](StreamId stream) { return stream != kMain && stream != kWire; })) {
      ++parts[3];
    } else {
      ++parts[5];
    }
  }
  return parts;
}

TEST(StepAccounts, AreWhatRunsAtEveryInstantInWhateverOrderTheEventsCome) {
  for (int trial = 0; trial < 200; ++trial) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<Work> all = random_work(random);
    std::vector<EventTime> held;
    for (int i = 0; i < 4; ++i) {
      const auto from = static_cast<std::int64_t>(random() % 40);
      held.push_back({from, from + static_cast<std::int64_t>(random() % 6)});
    }
    const Parts expected = brute_force(all, held, 60);
    for (int order = 0; order < 3; ++order) {
      // The streams' own order stays.
      std::shuffle(held.begin(), held.end(), random);
      std::stable_sort(all.begin(), all.end(), [&](const Work& a, const Work& b) {
        return (static_cast<int>(a.stream) + order) % 7 < (static_cast<int>(b.stream) + order) % 7;
      });
      TraceBuilder builder;
      std::vector<EventTime> times;
      for (const Work& work : all) {
        times.push_back(work.time);
        if (work.communicates) {
          builder.collective(work.stream, CollectiveKind::all_gather, 8, 2);
        } else {
          builder.op(work.stream, 1);
        }
      }
      const StepSpan span{.step = 1, .first = 0, .last = times.size(), .begin = 0, .end = 60};
      ASSERT_EQ(parts_of(account_steps(builder.trace, times, held, {span}).front()), expected);
    }
  }
}

TEST(StepAccounts, TellTensorAndPipelineFromOtherCommunication) {
  TraceBuilder builder;
  builder.op(kMain, 1);
  builder.collective(kMain, CollectiveKind::all_reduce, 8, 2).axis =
      static_cast<std::uint8_t>(Axis::tensor);
  builder.message(kWire, false, 1, 2).axis = static_cast<std::uint8_t>(Axis::pipeline);
  builder.collective(kWire, CollectiveKind::all_gather, 8, 2);
  const std::vector<EventTime> times{{0, 10}, {10, 14}, {16, 19}, {20, 25}};
  const StepSpan span{.step = 1, .first = 0, .last = 4, .begin = 0, .end = 26};
  const StepPrice step = account_steps(builder.trace, times, {}, {span}).front();
  EXPECT_EQ(step.exposed_tensor, 4);
  EXPECT_EQ(step.exposed_pipeline, 3);
  EXPECT_EQ(step.exposed_communication, 4 + 3 + 5) << "all of them";
  EXPECT_EQ(parts_of(step), (Parts{10, 12, 0, 0, 0, 4}));
}

TEST(StepAccounts, WorkOfTheNextStepThatBeganBeforeTheLastEndedIsCutThere) {
  TraceBuilder builder;
  builder.op(kMain, 1);
  builder.collective(kWire, CollectiveKind::all_gather, 8, 2);
  builder.op(kMain, 1);
  const std::vector<EventTime> times{{0, 10}, {10, 30}, {20, 40}};
  const std::vector<StepPrice> steps =
      account_steps(builder.trace, times, {},
                    {{.step = 1, .first = 0, .last = 2, .begin = 0, .end = 30},
                     {.step = 2, .first = 2, .last = 3, .begin = 30, .end = 45}});
  EXPECT_EQ(parts_of(steps[0]), (Parts{10, 20, 0, 0, 0, 0}));
  EXPECT_EQ(parts_of(steps[1]), (Parts{10, 0, 0, 0, 0, 5}));
}

}  // namespace
}  // namespace zl::sim
