// Schedules of random shapes, beyond those that are tried one by one (pipeline_test.cpp): the
// verifier passes every list as it is made, names what was spoiled, and the ranks' messages have
// one order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/pipeline/pipeline_times.h"
#include "core/pipeline/schedule.h"
#include "tests/seed.h"

namespace zl {
namespace {

constexpr int kShapes = 400;

struct RandomPipeline {
  PipelineKind kind;
  PipelineShape shape;

  std::string text() const {
    return std::string(name_of(kind)) + " of " + std::to_string(shape.ranks) + " ranks, " +
           std::to_string(shape.micro_batches) + " micro-batches, " + std::to_string(shape.chunks) +
           " chunks, groups of " + std::to_string(shape.group);
  }
};

bool is_legal(const RandomPipeline& one) {
  try {
    check_shape(one.kind, one.shape);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << one.text();
    return false;
  }
}

// Of those that can be.
RandomPipeline random_pipeline(std::mt19937_64& random) {
  const auto up_to = [&](std::uint64_t most) { return 1 + static_cast<int>(random() % most); };
  while (true) {
    const auto kind = static_cast<PipelineKind>(random() % kPipelineKinds);
    const int ranks = up_to(24);
    PipelineShape shape{.ranks = ranks, .micro_batches = up_to(96), .chunks = up_to(5)};
    if (kind == PipelineKind::interleaved && random() % 2 == 0) shape.group = ranks + up_to(8) - 1;
    if (is_legal({kind, shape})) return {kind, shape};
  }
}

TEST(RandomPipelines, AreWholeEndAndHoldNoMoreThanTheySay) {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < kShapes && !testing::Test::HasFailure(); ++i) {
    const RandomPipeline one = random_pipeline(random);
    SCOPED_TRACE(one.text());
    const Pipeline pipeline = make_pipeline(one.kind, one.shape);
    ASSERT_NO_THROW(check_pipeline(pipeline));
    const std::vector<StageCosts> equal(pipeline.stages());
    const PipelineTimes times = time_pipeline(pipeline, equal);
    int most = 0;
    for (const PipelineTimes::Rank& rank : times.ranks) {
      most = std::max(most, rank.held_until_weight_gradient);
      EXPECT_LE(rank.held_until_input_gradient, rank.held_until_weight_gradient);
    }
    ASSERT_NO_THROW(check_pipeline(pipeline, most));
    if (most > 1) {
      EXPECT_THROW(check_pipeline(pipeline, most - 1), Error);
    }
    EXPECT_GE(times.makespan, std::int64_t{3} * one.shape.micro_batches * one.shape.chunks);
  }
}

// One work of one rank left out, done twice, or moved to the other end of the list.
void spoil(Pipeline& pipeline, std::mt19937_64& random) {
  std::vector<Work>& list = pipeline.work[random() % pipeline.work.size()];
  const auto at = static_cast<std::ptrdiff_t>(random() % list.size());
  switch (random() % 3) {
    case 0:
      list.erase(list.begin() + at);
      return;
    case 1:
      list.insert(list.begin() + at, list[at]);
      return;
    default:
      // A backward first, or a forward last, waits for itself.
      const bool forward = list[at].kind == WorkKind::forward;
      if (forward) std::rotate(list.begin() + at, list.begin() + at + 1, list.end());
      if (!forward) std::rotate(list.begin(), list.begin() + at, list.begin() + at + 1);
  }
}

TEST(RandomPipelines, ThatAreSpoiledAreNamed) {
  std::mt19937_64 random(test::test_seed() + 1);
  for (int i = 0; i < kShapes && !testing::Test::HasFailure(); ++i) {
    const RandomPipeline one = random_pipeline(random);
    SCOPED_TRACE(one.text());
    Pipeline pipeline = make_pipeline(one.kind, one.shape);
    spoil(pipeline, random);
    try {
      check_pipeline(pipeline);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::infeasible);
      const std::string what = error.what();
      EXPECT_EQ(what.find("parallel.schedule: " + std::string(name_of(one.kind))), 0U) << what;
      EXPECT_NE(what.find("rank "), std::string::npos) << what;
    }
  }
}

// What every rank is told to send is what its peers are told to take, as many and in their order.
TEST(RandomPipelines, TellBothSidesOfAMessageTheSame) {
  std::mt19937_64 random(test::test_seed() + 2);
  using enum InstructionKind;
  for (int i = 0; i < kShapes && !testing::Test::HasFailure(); ++i) {
    const RandomPipeline one = random_pipeline(random);
    SCOPED_TRACE(one.text());
    const Pipeline pipeline = make_pipeline(one.kind, one.shape);
    const std::vector<Schedule> schedules = pipeline_schedules(pipeline);
    struct Sides {
      std::vector<std::pair<int, int>> sent, received;  // stage that takes it, micro-batch
    };
    std::map<std::tuple<int, int, bool>, Sides> channels;  // from, to, forward
    for (int rank = 0; rank < one.shape.ranks; ++rank) {
      for (const Instruction& each : schedules[rank].body) {
        const bool forward = each.kind == send_stream || each.kind == receive_stream;
        const bool sends = each.kind == send_stream || each.kind == send_gradient;
        const bool receives = each.kind == receive_stream || each.kind == receive_gradient;
        if (!sends && !receives) continue;
        const int stage = pipeline.stage_of(rank, each.chunk), way = forward ? 1 : -1;
        const int other = pipeline.rank_of(sends ? stage + way : stage - way);
        EXPECT_NE(other, rank);
        Sides& sides = channels[{sends ? rank : other, sends ? other : rank, forward}];
        (sends ? sides.sent : sides.received).emplace_back(sends ? stage + way : stage, each.micro);
      }
    }
    for (const auto& [key, sides] : channels) EXPECT_EQ(sides.sent, sides.received);
    EXPECT_EQ(channels.empty(), one.shape.ranks == 1);
  }
}

}  // namespace
}  // namespace zl
