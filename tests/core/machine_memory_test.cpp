// The memory of a machine as made-up /proc and /sys folders tell it.
#include "core/base/machine_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

struct MachineMemory : testing::Test {
  MachineMemory() {
    write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  8000 kB\n");
  }
  ~MachineMemory() override { unsetenv("ZEROLAB_MEMORY"); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  std::int64_t available() const { return available_memory(root.string()); }

  test::TempFolder root;
};

TEST_F(MachineMemory, IsWhatTheSystemCallsAvailable) {
  EXPECT_EQ(available(), 8000 << 10);
  write("proc/self/cgroup", "0::/user\n");
  write("sys/fs/cgroup/user/memory.max", "max\n");
  EXPECT_EQ(available(), 8000 << 10);
}

TEST_F(MachineMemory, IsTheLeastThatAControlGroupLeaves) {
  write("proc/self/cgroup", "1:name=systemd:/\n0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "5000000\n");
  write("sys/fs/cgroup/job/step/memory.current", "1000000\n");
  write("sys/fs/cgroup/job/step/memory.stat", "anon 600000\ninactive_file 400000\n");
  EXPECT_EQ(available(), 5'000'000 - 600'000) << "pages of files that can go are not in use";
  write("sys/fs/cgroup/job/memory.max", "4000000\n");
  write("sys/fs/cgroup/job/memory.current", "1500000\n");
  EXPECT_EQ(available(), 2'500'000) << "the group above";
  write("sys/fs/cgroup/job/memory.current", "4500000\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(MachineMemory, ReadsTheOldGroupsWhereTheContainersOwnIsTheTop) {
  write("proc/self/cgroup", "9:cpu:/x\n4:memory:/docker/0123\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
  write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 250000\n");
  EXPECT_EQ(available(), 2'250'000);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(available(), 8000 << 10);
}

TEST_F(MachineMemory, RunsLeaveSomeOrKeepToWhatTheUserSays) {
  EXPECT_GT(machine_memory(), 0);
  EXPECT_LT(machine_memory(), available_memory());
  setenv("ZEROLAB_MEMORY", "16MiB", 1);
  EXPECT_EQ(machine_memory(), 16 << 20);
  setenv("ZEROLAB_MEMORY", "much", 1);
  try {
    machine_memory();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("ZEROLAB_MEMORY: ", 0), 0u) << error.what();
  }
}

}  // namespace
}  // namespace zl
