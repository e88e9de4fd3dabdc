// A call that lasts too long ends the process, an idle watchdog and one in time do not; nor do
// files that move.
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

// A disk that does not answer the n-th operation from now on, or every one slowly.
std::atomic<int> g_before_it_hangs{0};
int hang_in_turn() {
  if (--g_before_it_hangs == 0) std::this_thread::sleep_for(std::chrono::hours(1));
  return 0;
}
int take_time() {
  std::this_thread::sleep_for(milliseconds(400));
  return 0;
}

class SlowDisk {
 public:
  explicit SlowDisk(FileFault fault) { set_file_fault(fault); }
  ~SlowDisk() { set_file_fault(nullptr); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;
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
    const SlowDisk disk(hang_in_turn);
    const FileWatchdog watchdog(milliseconds(50));
    save(folder / "rank-0");
  };
  const std::vector<std::string> doing{"create", "write", "sync", "rename"};
  for (int i = 0; i < static_cast<int>(doing.size()); ++i) {
    EXPECT_EXIT(hang(i + 1), testing::ExitedWithCode(1),
                "zerolab: error: .*/rank-0.*: \"" + doing[i] + "\" has not ended for 50 ms");
  }
}

TEST(FileWatchdog, LetsADiskBeSlowAsLongAsItMoves) {
  const test::TempFolder folder;
  const SlowDisk disk(take_time);
  const FileWatchdog watchdog(milliseconds(1000));
  for (int i = 0; i < 2; ++i) save(folder / "rank-0");
  const FileWatchdog for_ever(milliseconds(0));
}

TEST(FileOperations, AreNamedTheOldestFirst) {
  EXPECT_FALSE(oldest_file_operation());
  const std::string one = "one", two = "two";
  auto first = std::make_unique<FileOperation>(one, "read");
  const FileOperation second(two, "write");
  EXPECT_EQ(oldest_file_operation()->path, "one");
  first.reset();
  EXPECT_EQ(oldest_file_operation()->path, "two");
  EXPECT_EQ(oldest_file_operation()->doing, "write");
}

}  // namespace
}  // namespace zl
