// The clean-up of the file tier's folder deletes what runs of this user left, and nothing that was
// put in their place.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "backends/cpu/storage_folder.h"
#include "tests/storage/object_parts.h"

namespace zl::test {
namespace {

std::function<void()> g_after_lock;  // once

}  // namespace
}  // namespace zl::test

// In place of the library's, so that something can happen right after it.
extern "C" int flock(int descriptor, int operation) {
  const auto result = static_cast<int>(::syscall(SYS_flock, descriptor, operation));
  if (const auto act = std::exchange(zl::test::g_after_lock, nullptr)) act();
  return result;
}

namespace zl::test {
namespace {

namespace fs = std::filesystem;

class StorageFolderTest : public Folder {
 protected:
  void put(const std::string& file) const {
    fs::create_directories(fs::path(path + "/" + file).parent_path());
    std::ofstream(path + "/" + file) << "text";
  }
  bool exists(const std::string& file) const { return fs::exists(path + "/" + file); }
  std::string leftover = "zerolab-1-1-rank0";
};

TEST_F(StorageFolderTest, AFolderThatBecomesALinkAfterItsLockIsNotFollowed) {
  put(leftover + "/optimizer-0");
  put("victim/weights-0");
  g_after_lock = [&] {
    fs::rename(path + "/" + leftover, path + "/away");
    fs::create_directory_symlink(path + "/victim", path + "/" + leftover);
  };
  { const cpu::StorageFolder folder(path, 0); }
  EXPECT_TRUE(exists("victim/weights-0"));
  EXPECT_FALSE(exists("away/optimizer-0")) << "the folder that was locked is the one to clear";
}

// Ranks that start together see each other's folders for a moment before they are locked.
TEST_F(StorageFolderTest, OnlyWhatHoldsAnythingIsSaidToBeLeftBehind) {
  const auto said = [this] {
    ::testing::internal::CaptureStderr();
    { const cpu::StorageFolder folder(path, 0); }
    return ::testing::internal::GetCapturedStderr();
  };
  fs::create_directories(path + "/" + leftover);
  EXPECT_EQ(said(), "");
  put(leftover + "/optimizer-0");
  EXPECT_NE(said().find("left behind"), std::string::npos);
  EXPECT_FALSE(exists(leftover));
}

TEST_F(StorageFolderTest, LinksAndOtherPeoplesFilesStay) {
  put("victim/weights-0");
  fs::create_directory_symlink(path + "/victim", path + "/" + leftover);
  const std::string other = "zerolab-2-0-rank1";
  put(other + "/weights-1");
  put(other + "/Notes.txt");
  fs::create_symlink(path + "/victim/weights-0", path + "/" + other + "/weights-2");
  fs::create_directories(path + "/" + other + "/optimizer-1");
  { const cpu::StorageFolder folder(path, 0); }
  EXPECT_TRUE(exists("victim/weights-0"));
  EXPECT_TRUE(fs::is_symlink(path + "/" + leftover));
  EXPECT_FALSE(exists(other + "/weights-1")) << "is a leftover";
  EXPECT_TRUE(exists(other + "/Notes.txt"));
  EXPECT_TRUE(fs::is_symlink(path + "/" + other + "/weights-2"));
  EXPECT_TRUE(exists(other + "/optimizer-1")) << "is a folder";
}

// Only root can give a folder away; for others there is nothing to see here.
TEST_F(StorageFolderTest, FoldersOfOtherUsersStay) {
  put(leftover + "/weights-0");
  const bool given = ::geteuid() == 0 && ::chown((path + "/" + leftover).c_str(), 1, 1) == 0;
  { const cpu::StorageFolder folder(path, 0); }
  EXPECT_EQ(exists(leftover + "/weights-0"), given);
}

TEST_F(StorageFolderTest, ALinkInThePlaceOfTheOwnFolderIsNotFollowedAtTheEnd) {
  put("victim/weights-0");
  {
    const cpu::StorageFolder folder(path, 0);
    fs::rename(folder.path(), path + "/away");
    fs::create_directory_symlink(path + "/victim", folder.path());
  }
  EXPECT_TRUE(exists("victim/weights-0"));
}

}  // namespace
}  // namespace zl::test
