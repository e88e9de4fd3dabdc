// Where the threads of ranks run that outnumber the cores.
#include "core/threads/keep_to_core.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "tests/own_cores.h"

namespace zl {
namespace {

using test::own_cores;

// Of a thread that a rank's thread starts.
std::vector<int> cores_of_rank(int rank, int ranks) {
  std::vector<int> found;
  std::thread([&] {
    keep_to_core(rank, ranks);
    std::thread([&] { found = own_cores(); }).join();
  }).join();
  return found;
}

TEST(KeepToCore, EachHasAsManyRanks) {
  const std::vector<int> all = own_cores();
  const int count = static_cast<int>(all.size());
  std::map<int, int> ranks_on;
  for (int rank = 0; rank < 3 * count; ++rank) {
    const std::vector<int> cores = cores_of_rank(rank, 3 * count);
    ASSERT_EQ(cores.size(), 1u);
    ++ranks_on[cores[0]];
  }
  ASSERT_EQ(ranks_on.size(), all.size());
  for (const int core : all) EXPECT_EQ(ranks_on[core], 3) << core;
  EXPECT_EQ(own_cores(), all) << "of the caller's thread";
}

TEST(KeepToCore, RanksThatDoNotShareThemEvenlyRunAnywhere) {
  const std::vector<int> all = own_cores();
  const int count = static_cast<int>(all.size());
  EXPECT_EQ(cores_of_rank(0, count), all);
  if (count == 1) return;  // of which every number is a multiple
  EXPECT_EQ(cores_of_rank(0, 1), all);
  EXPECT_EQ(cores_of_rank(1, count + 1), all);
}

}  // namespace
}  // namespace zl
