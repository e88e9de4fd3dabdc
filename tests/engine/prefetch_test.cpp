// ZeRO-3 gathers a block's weights while the block before it computes, whatever the budget.
#include <gtest/gtest.h>

#include <map>

#include "tests/engine/runs.h"

namespace zl::test {
namespace {

// Of the second step: the places of each unit's gathers, and of the first work of its passes.
struct Places {
  std::map<int, std::vector<std::size_t>> gathers;
  std::map<int, std::size_t> forward, backward;
};

Places places(const Trace& trace) {
  Places places;
  std::size_t index = 0;
  for (const TraceEvent& event : trace.events()) {
    ++index;
    if (event.scope.step != 2) continue;
    const int unit = event.scope.unit;
    if (event.type == EventType::collective && event.scope.phase == Phase::gather) {
      places.gathers[unit].push_back(index);
    } else if (event.type == EventType::op && event.scope.phase == Phase::forward) {
      places.forward.emplace(unit, index);
    } else if (event.type == EventType::op && event.scope.phase == Phase::backward) {
      places.backward.emplace(unit, index);
    }
  }
  return places;
}

TEST(Prefetch, RunsOneBlockAheadInBothPasses) {
  ModelConfig model = tiny_gpt2();
  model.layers = 5;
  for (const std::int64_t budget : {std::int64_t{1}, std::int64_t{50'000'000}}) {
    Strategy s = strategy(3);
    s.zero.overlap_comm = true;
    s.zero.prefetch_bucket_size = budget;
    s.zero.max_reuse_distance = 1;  // only the head's weights stay for its backward
    const Places found = places(run_sim(2, model, s, steps(2)).trace);
    for (int block = 1; block <= 5; ++block) {
      const std::string what =
          "block " + std::to_string(block) + ", budget " + std::to_string(budget);
      const std::vector<std::size_t>& gathers = found.gathers.at(block);
      ASSERT_EQ(gathers.size(), 2u) << what;  // dropped in between
      EXPECT_LT(gathers[0], found.forward.at(block - 1)) << what;
      const auto before = found.backward.find(block + 1);
      ASSERT_NE(before, found.backward.end()) << what;
      EXPECT_LT(gathers[1], before->second) << what;
    }
  }
}

TEST(Prefetch, KeepsWhatIsUsedAgainSoon) {
  Strategy s = strategy(3);
  s.zero.overlap_comm = true;
  s.zero.prefetch_bucket_size = s.zero.max_reuse_distance = 50'000'000;
  const Places found = places(run_sim(2, tiny_gpt2(), s, steps(2)).trace);
  for (int block = 1; block <= 3; ++block) EXPECT_EQ(found.gathers.at(block).size(), 1u) << block;
}

}  // namespace
}  // namespace zl::test
