// Files: what may be replaced and what never is, what is read without waiting, and that a failure
// of any operation leaves the old content or the new.
#include "core/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "core/base/error.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string contents(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(folder_), {}); }

  test::TempFolder temporary_;
  const std::string folder_ = temporary_.string();
};

void save(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "in: " << (text)

mode_t type_of(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & S_IFMT : 0;
}

TEST_F(Files, AreReplacedBehindTheirLinks) {
  put("file", "old");
  fs::create_directory(path("far"));
  fs::create_symlink("../file", path("far/second"));
  fs::create_symlink("far/second", path("first"));
  save(path("first"), "new");
  EXPECT_EQ(contents("file"), "new");
  EXPECT_EQ(type_of(path("first")), mode_t{S_IFLNK});
  EXPECT_EQ(type_of(path("far/second")), mode_t{S_IFLNK});
  fs::create_symlink(path("made"), path("dangling"));
  save(path("dangling"), "made");
  EXPECT_EQ(contents("made"), "made");
  EXPECT_EQ(type_of(path("dangling")), mode_t{S_IFLNK});
  EXPECT_EQ(entries(), 5) << "a temporary file is left";
}

TEST_F(Files, ALinkInACircleIsAnError) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  EXPECT_HAS(error_of([&] { save(path("a"), "x"); }), "Too many levels of symbolic links");
  EXPECT_EQ(type_of(path("a")), mode_t{S_IFLNK});
}

// Nodes of its own where this user may make them, else links to those of the machine.
TEST_F(Files, DevicesAreWrittenToAndStayDevices) {
  const auto device = [&](const std::string& name, unsigned minor) {
    if (::mknod(path(name).c_str(), S_IFCHR | 0600, makedev(1, minor)) != 0 ||
        ::access(path(name).c_str(), W_OK) != 0) {
      fs::remove(path(name));
      fs::create_symlink("/dev/" + name, path(name));
    }
    return type_of(path(name));
  };
  const mode_t null = device("null", 3), full = device("full", 7);
  EXPECT_EQ(error_of([&] { save(path("null"), "x"); }), "");
  const std::string refused = error_of([&] { save(path("full"), "x"); });
  EXPECT_HAS(refused, path("full") + ": cannot write: No space left on device; free some space");
  EXPECT_EQ(type_of(path("null")), null);
  EXPECT_EQ(type_of(path("full")), full);
  EXPECT_EQ(entries(), 2);
}

TEST_F(Files, AFifoIsWrittenToWhereSomebodyReads) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_HAS(error_of([&] { save(path("fifo"), "x"); }), "nobody reads from it");
  const int reader = ::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  save(path("fifo"), "text");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  ::close(reader);
  EXPECT_EQ(std::string(text), "text");
  EXPECT_EQ(type_of(path("fifo")), mode_t{S_IFIFO});
}

// As /dev/stdout is where it goes to a file.
TEST_F(Files, AnOpenFileIsAppendedTo) {
  const int open = ::open(path("file").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(open, "before ", 7), 7);
  fs::create_symlink("/proc/self/fd/" + std::to_string(open), path("stdout"));
  save(path("stdout"), "text");
  struct stat is {
  }, was{};
  EXPECT_EQ(::stat(path("file").c_str(), &is), 0);
  EXPECT_EQ(::fstat(open, &was), 0);
  ::close(open);
  EXPECT_EQ(contents("file"), "before text");
  EXPECT_EQ(is.st_ino, was.st_ino) << "it was replaced";
}

TEST_F(Files, FoldersAndSocketsAreRefused) {
  fs::create_directory(path("folder"));
  EXPECT_HAS(error_of([&] { save(path("folder"), "x"); }), "is a folder, not a file");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_HAS(error_of([&] { save(path("socket"), "x"); }), "is a socket, not a file");
  ::close(socket);
  EXPECT_EQ(type_of(path("socket")), mode_t{S_IFSOCK});
  EXPECT_HAS(error_of([&] { save(path("none/file"), "x"); }), "make its folder");
}

std::atomic<int> g_left{0};

int fail_one() { return g_left-- == 1 ? EIO : 0; }

// Both ways: a file that is there, and one that is not.
TEST_F(Files, AFailureOfAnyOperationLeavesTheOldFileOrTheNew) {
  const std::string old = "old", text = "new";
  int failed = 0;
  for (int n = 1; g_left = n, true; ++n) {
    put("file", old);
    set_file_fault(&fail_one);
    const std::string error = error_of([&] { save(path("file"), text); });
    set_file_fault(nullptr);
    EXPECT_EQ(entries(), 1) << "a temporary file is left by operation " << n;
    EXPECT_EQ(contents("file"), error.empty() ? text : old) << "operation " << n;
    if (g_left > 0) break;  // there was no such operation
    failed += error.empty() ? 0 : 1;
  }
  EXPECT_EQ(failed, 4) << "creating, writing, syncing, renaming; a folder need not be synced";
}

TEST_F(Files, TemporaryFilesAreToldFromOthers) {
  EXPECT_TRUE(is_temporary_of("a/rank.tmp123", "a/rank"));
  for (const char* other : {"a/rank", "a/rank.tmp", "a/rank.tmp12x", "a/rank2.tmp1", "a/ran"}) {
    EXPECT_FALSE(is_temporary_of(other, "a/rank")) << other;
  }
}

TEST_F(Files, OnlyRegularFilesAreOpenedAndNothingIsWaitedFor) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { const InputFile file(name); });
  };
  EXPECT_HAS(refusal(path("folder")), "is a folder, not a regular file");
  EXPECT_HAS(refusal(path("fifo")), "is a FIFO, not a regular file");
  EXPECT_HAS(refusal("/dev/zero"), "is a device, not a regular file");
  EXPECT_HAS(refusal(path("none")), "cannot open it (No such file");
}

TEST_F(Files, AFileThatIsCutShortIsAnError) {
  const InputFile file(put("file", "0123456789"));
  std::string text(4, ' ');
  file.read(6, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "6789");
  fs::resize_file(path("file"), 8);
  const std::string error =
      error_of([&] { file.read(6, std::as_writable_bytes(std::span(text))); });
  EXPECT_HAS(error, path("file") + ": ends after 8 bytes, but had 10 when it was opened");
}

TEST_F(Files, FoldersAreMadeWithTheirParents) {
  make_folders(path("a/b/c"));
  make_folders(path("a/b/c"));
  EXPECT_TRUE(fs::is_directory(path("a/b/c")));
  put("file", "");
  EXPECT_HAS(error_of([&] { make_folders(path("file")); }), path("file") + ": cannot make");
  EXPECT_HAS(error_of([&] { make_folders(path("file/x")); }), "Not a directory");
}

}  // namespace
}  // namespace zl
