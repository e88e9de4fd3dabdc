// Time counts for a process that runs.
#include "core/threads/stillness.h"

#include <gtest/gtest.h>

namespace zl {
namespace {

using std::chrono::milliseconds;

constexpr Stillness::Clock::time_point kStart{};

TEST(Stillness, LastsUntilSomethingMoves) {
  Stillness still(kStart);
  EXPECT_FALSE(still.lasts(milliseconds(20), kStart + milliseconds(19)));
  EXPECT_TRUE(still.lasts(milliseconds(20), kStart + milliseconds(20)));
  EXPECT_TRUE(still.lasts(milliseconds(20), kStart + milliseconds(20)));
  still.moved(kStart + milliseconds(20));
  EXPECT_FALSE(still.lasts(milliseconds(20), kStart + milliseconds(30)));
}

// Nobody looked for longer than a second: the process may have been stopped.
TEST(Stillness, OfAProcessThatWasStoppedDoesNotCount) {
  Stillness still(kStart);
  EXPECT_FALSE(still.lasts(milliseconds(1400), kStart + milliseconds(1500)));
  EXPECT_TRUE(still.lasts(milliseconds(1400), kStart + milliseconds(1900)));
}

}  // namespace
}  // namespace zl
