// Ranks that state what they run, alike or not, over a real transport.
#include "core/rank/agreement.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "core/threads/failures.h"
#include "tests/backends_cpu_world/ranks.h"

namespace zl::cpu::test {
namespace {

TEST(AgreementOfRanks, OnTheSameFactsLetsThemGoOn) {
  std::atomic<int> through{0};
  run_ranks(3, [&](RankHandle rank) {
    agree(rank, {.facts = {{"run.seed", "1"}, {"data", ""}}, .failure = {}});
    ++through;
  });
  EXPECT_EQ(through, 3);
}

TEST(AgreementOfRanks, OnDifferentFactsEndsAllWithTheDifference) {
  std::atomic<int> told{0};
  const auto world = make_world({.ranks = 3});
  const std::string message = error_of(*world, [&](RankHandle rank) {
    const bool odd = rank.communicator.rank() == 1;
    try {
      agree(rank, {.facts = {{"run.steps", "3"}, {"run.seed", odd ? "2" : "1"}}, .failure = {}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 3);
  EXPECT_EQ(message,
            "the ranks do not run the same: run.seed: rank 0, 2 has 1, rank 1 has 2; start all of "
            "them with one program, one set of arguments and equal files");
}

TEST(AgreementOfRanks, WithARankThatCannotBeginEndsAllWithItsCause) {
  std::atomic<int> told{0};
  const auto world = make_world({.ranks = 3});
  const std::string message = error_of(*world, [&](RankHandle rank) {
    Statement statement{.facts = {{"run.seed", "1"}}, .failure = {}};
    const Error cause(ErrorCode::invalid, "no.txt: cannot open it");
    if (rank.communicator.rank() == 2) statement.failure = std::make_exception_ptr(cause);
    try {
      agree(rank, statement);
    } catch (const RankLeft& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_STREQ(error.what(), "rank 2: no.txt: cannot open it");
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 2);
  EXPECT_EQ(message, "no.txt: cannot open it");
}

}  // namespace
}  // namespace zl::cpu::test
