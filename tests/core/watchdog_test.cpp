// A call that lasts too long ends the process, an idle watchdog and one in time do not.
#include "core/threads/watchdog.h"

#include <gtest/gtest.h>

#include <thread>

namespace zl {
namespace {

using std::chrono::milliseconds;

TEST(Watchdog, MindsOnlyCallsUnderWay) {
  Watchdog watchdog(milliseconds(1000), [] { return "a call"; });
  { const Watchdog::Watch watch(watchdog); }
  std::this_thread::sleep_for(milliseconds(2500));  // nothing is under way
  const Watchdog::Watch watch(watchdog);
}

TEST(WatchdogDeathTest, EndsTheProcessWithWhatItWasToldToSay) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto hang = [] {
    Watchdog watchdog(milliseconds(50), [] { return "MPI_Init: nobody\ncame"; });
    const Watchdog::Watch watch(watchdog);
    std::this_thread::sleep_for(std::chrono::hours(1));
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(1), "zerolab: error: MPI_Init: nobody");
}

}  // namespace
}  // namespace zl
