// Time counts for a process that runs.
#include "core/threads/stillness.h"

#include <gtest/gtest.h>

#include <thread>

namespace zl {
namespace {

using std::chrono::milliseconds;

TEST(Stillness, LastsUntilSomethingMoves) {
  Stillness still;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(still.lasts(milliseconds(20)));
  EXPECT_TRUE(still.lasts(milliseconds(20)));
  still.moved();
  EXPECT_FALSE(still.lasts(milliseconds(600'000)));
}

// Nobody looked for longer than a second: the process may have been stopped.
TEST(Stillness, OfAProcessThatWasStoppedDoesNotCount) {
  Stillness still;
  std::this_thread::sleep_for(milliseconds(1500));
  EXPECT_FALSE(still.lasts(milliseconds(1400)));
}

}  // namespace
}  // namespace zl
