// Files that stand still: the process says which and ends, and goes on as long as something moves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "backends/cpu/io_queue.h"
#include "tests/storage/object_parts.h"

namespace zl::test {
namespace {

using std::chrono::milliseconds;

using WatchedQueue = Folder;
using WatchedQueueDeathTest = Folder;

// Takes `each` for every request, as a disk that goes to sleep.
class SlowQueue final : public cpu::IoQueue {
 public:
  explicit SlowQueue(milliseconds each) : each_(each) {}
  std::string name() const override { return "slow"; }
  void submit(std::span<const cpu::IoRequest>, std::span<const std::uint64_t> tags) override {
    tags_.assign(tags.begin(), tags.end());
  }
  void wait(std::int64_t, std::vector<cpu::IoResult>& results) override {
    std::this_thread::sleep_for(each_);
    results.push_back({tags_.back(), ObjectLayout::kPage});
    tags_.pop_back();
  }

 private:
  milliseconds each_;
  std::vector<std::uint64_t> tags_;
};

std::vector<cpu::IoResult> read_pages(int file, std::int64_t pages, milliseconds each,
                                      milliseconds patience) {
  const auto queue = cpu::watched(std::make_unique<SlowQueue>(each), patience);
  std::vector<cpu::IoRequest> requests;
  std::vector<std::uint64_t> tags;
  for (std::int64_t page = 0; page < pages; ++page) {
    requests.push_back({.file = file, .bytes = 4096, .offset = 4096 * page});
    tags.push_back(static_cast<std::uint64_t>(page));
  }
  queue->submit(requests, tags);
  std::vector<cpu::IoResult> results;
  for (std::int64_t page = 0; page < pages; ++page) queue->wait(1, results);
  return results;
}

TEST_F(WatchedQueueDeathTest, SaysWhichFileStandsStillAndEndsTheProcess) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const std::string file = path + "/moments";
  const int opened = open(file.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(opened, 0);
  EXPECT_EXIT(read_pages(opened, 2, std::chrono::hours(1), milliseconds(50)),
              testing::ExitedWithCode(1),
              "zerolab: error: .*/moments: nothing was read for 50 ms \\(4096 bytes at 4096 under "
              "way\\): ending this process");
  close(opened);
}

TEST_F(WatchedQueue, GoesOnAsLongAsSomethingMoves) {
  EXPECT_EQ(read_pages(0, 8, milliseconds(250), milliseconds(1000)).size(), 8U);
  EXPECT_EQ(read_pages(0, 1, milliseconds(50), milliseconds(0)).size(), 1U);  // 0: for ever
}

}  // namespace
}  // namespace zl::test
