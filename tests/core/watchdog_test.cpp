// A call that lasts too long ends the process, one in time does not; nor do files that move.
#include "core/threads/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/file_operations.h"
#include "core/base/files.h"
#include "core/threads/file_watchdog.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

using std::chrono::milliseconds;

// A clock that goes as a test says.
class Looks {
 public:
  explicit Looks(milliseconds patience) : timer_(patience, now_) {}
  // So much later.
  bool is_overdue(milliseconds later, std::uint64_t call) {
    return timer_.is_overdue(call, now_ += later);
  }

 private:
  CallTimer::Clock::time_point now_{};
  CallTimer timer_;
};

TEST(CallTimer, MindsOnlyCallsUnderWay) {
  Looks looks(milliseconds(2000));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(looks.is_overdue(milliseconds(1000), 0));
  EXPECT_FALSE(looks.is_overdue(milliseconds(1000), 1)) << "it may just have begun";
  EXPECT_FALSE(looks.is_overdue(milliseconds(1000), 1));
  EXPECT_TRUE(looks.is_overdue(milliseconds(1000), 1));
}

TEST(CallTimer, LetsCallsBeSlowAsLongAsTheyEnd) {
  Looks looks(milliseconds(1000));
  for (std::uint64_t call = 1; call < 20; ++call) {
    EXPECT_FALSE(looks.is_overdue(milliseconds(400), call));
    EXPECT_FALSE(looks.is_overdue(milliseconds(400), call));
  }
}

// While nobody looked this process may have been stopped, and the call with it.
TEST(CallTimer, DoesNotCountWhatNobodySaw) {
  Looks looks(milliseconds(1500));
  EXPECT_FALSE(looks.is_overdue(milliseconds(1000), 1));
  EXPECT_FALSE(looks.is_overdue(milliseconds(60'000), 1));
  EXPECT_TRUE(looks.is_overdue(milliseconds(1000), 1));
}

TEST(Watchdog, TellsCallsApart) {
  Watchdog watchdog(milliseconds(0), [] { return "a call"; });
  EXPECT_EQ(watchdog.under_way().number, 0U);
  std::uint64_t first = 0;
  {
    const Watchdog::Watch watch(watchdog);
    first = watchdog.under_way().number;
    EXPECT_EQ(watchdog.under_way().what(), "a call");
  }
  EXPECT_EQ(watchdog.under_way().number, 0U);
  const Watchdog::Watch watch(watchdog);
  EXPECT_NE(watchdog.under_way().number, 0U);
  EXPECT_NE(watchdog.under_way().number, first);
}

TEST(Watchdog, ForEverHasNoThread) {
  Watchdog watchdog(milliseconds(0), [] { return "a call"; });
  const Watchdog::Watch watch(watchdog);
  const FileWatchdog files(milliseconds(0));
  EXPECT_FALSE(watch_calls(milliseconds(0), [] { return CallUnderWay(); }).joinable());
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

// A disk that does not answer the n-th operation from now on.
std::atomic<int> g_before_it_hangs{0};
int hang_in_turn() {
  if (--g_before_it_hangs == 0) std::this_thread::sleep_for(std::chrono::hours(1));
  return 0;
}

class HungDisk {
 public:
  explicit HungDisk(FileFault fault) { set_file_fault(fault); }
  ~HungDisk() { set_file_fault(nullptr); }
  HungDisk(const HungDisk&) = delete;
  HungDisk& operator=(const HungDisk&) = delete;
};

void save(const std::string& path) {
  AtomicFile file(path);
  file.write("weights");
  file.commit();
}

TEST(FileWatchdogDeathTest, SaysWhichFileStandsStillInWhat) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const test::TempFolder folder;
  const auto hang = [&](int operation) {
    g_before_it_hangs = operation;
    const HungDisk disk(hang_in_turn);
    const FileWatchdog watchdog(milliseconds(50));
    save(folder / "rank-0");
  };
  const std::vector<std::string> doing{"create", "write", "sync", "rename"};
  for (int i = 0; i < static_cast<int>(doing.size()); ++i) {
    EXPECT_EXIT(hang(i + 1), testing::ExitedWithCode(1),
                "zerolab: error: .*/rank-0.*: \"" + doing[i] + "\" has not ended for 50 ms");
  }
}

TEST(FileOperations, AreNamedTheOldestFirst) {
  EXPECT_FALSE(oldest_file_operation());
  const std::string one = "one", two = "two";
  auto first = std::make_unique<FileOperation>(one, "read");
  const FileOperation second(two, "write");
  EXPECT_EQ(oldest_file_operation()->path, "one");
  const std::int64_t number = oldest_file_operation()->number;
  first.reset();
  EXPECT_GT(oldest_file_operation()->number, number);
  EXPECT_EQ(oldest_file_operation()->path, "two");
  EXPECT_EQ(oldest_file_operation()->doing, "write");
}

}  // namespace
}  // namespace zl
