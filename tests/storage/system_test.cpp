// What the system does to the file tier: processes that die, files that vanish, limits, full disks,
// and kernels that forbid io_uring or O_DIRECT.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/io_queue.h"
#include "backends/cpu/object_file.h"
#include "tests/storage/child.h"
#include "tests/storage/object_parts.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;
using SystemTest = Folder;

const std::vector<std::int64_t> kSizes = {100001, 4096, 3};
constexpr std::int64_t kBlock = 8192;

// "" when an object written to the folder comes back.
std::string round_trip(const std::string& folder) {
  const auto storage = cpu::make_file_storage(folder, 0, AioConfig{});
  const Parts parts(kSizes, 1);
  Parts back(kSizes, 2);
  const ObjectId object = storage->create("object", ObjectLayout(kSizes, kBlock));
  storage->write(object, parts.span());
  storage->read(object, back.span());
  return back == parts ? "" : "other data came back";
}

// The first regular file below the folder.
fs::path file_below(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) return entry.path();
  }
  return {};
}

TEST_F(SystemTest, NamesAFileThatWasRemovedUnderTheRun) {
  const auto storage = cpu::make_file_storage(path, 0, AioConfig{});
  Parts parts(kSizes, 1);
  const ObjectId object = storage->create("moments", ObjectLayout(kSizes, kBlock));
  storage->write(object, parts.span());
  fs::remove(file_below(path));
  for (const std::string& message : {message_of([&] { storage->read(object, parts.span()); }),
                                     message_of([&] { storage->write(object, parts.span()); })}) {
    EXPECT_NE(message.find("/moments: the file was removed"), std::string::npos) << message;
  }
}

TEST_F(SystemTest, NamesAFileThatWasCutAnywhere) {
  const ObjectLayout layout(kSizes, kBlock);
  for (const std::int64_t kept : {0L, 512L, 4096L, 5000L, 12288L, 20481L}) {
    const std::string file = path + "/object";
    cpu::ObjectFile object(file, layout);
    const auto engine = cpu::make_io_engine(AioConfig{});
    Parts parts(kSizes, 1);
    object.write(*engine, parts.span());  // generation 1: the second slot
    fs::resize_file(file, static_cast<std::uintmax_t>(layout.slot_bytes() + kept));
    const std::string message = message_of([&] { object.read(*engine, parts.span()); });
    EXPECT_NE(message.find(file + ": cannot read"), std::string::npos) << kept << message;
    EXPECT_NE(message.find("the file ends too early"), std::string::npos) << message;
    fs::remove(file);
  }
}

// Writes generation after generation, each of one value, and says so after each.
[[noreturn]] void write_for_ever(const std::string& file, const ObjectLayout& layout, int told) {
  cpu::ObjectFile object(file, layout);
  const auto engine = cpu::make_io_engine(AioConfig{});
  Parts parts(kSizes, 1);
  for (std::uint8_t value = 1; true; ++value) {
    for (const ObjectPart& part : parts.span())
      std::fill_n(part.data, part.bytes, std::byte{value});
    object.write(*engine, parts.span());
    if (write(told, &value, 1) != 1) _exit(1);
  }
}

TEST_F(SystemTest, AKilledProcessLeavesAWholeGeneration) {
  const ObjectLayout layout(kSizes, kBlock);
  const std::string file = path + "/object";
  for (std::uint8_t generations = 1; generations <= 12; ++generations) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_for_ever(file, layout, ends[1]);
    std::uint8_t told = 0;
    while (told < generations) ASSERT_EQ(read(ends[0], &told, 1), 1);
    kill(child, SIGKILL);  // anywhere within one of the next writes
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    Parts back(kSizes, 2);
    const std::uint64_t found = cpu::recover(file, layout, back.span());
    EXPECT_GE(found, generations);
    for (const ObjectPart& part : back.span()) {
      EXPECT_EQ(std::count(part.data, part.data + part.bytes, static_cast<std::byte>(found)),
                part.bytes);
    }
    fs::remove(file);
  }
}

TEST_F(SystemTest, AFileAboveTheLimitIsAnErrorNotASignal) {
  const std::string message = in_child([&] {
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto storage = cpu::make_file_storage(path, 0, AioConfig{});
    return message_of([&] { storage->create("big", ObjectLayout({1 << 20}, 4096)); });
  });
  EXPECT_NE(message.find("/big: no room for 2105344 bytes: File too large"), std::string::npos)
      << message;
  EXPECT_NE(message.find("ulimit -f"), std::string::npos) << message;
}

TEST_F(SystemTest, AWriteThatTheSystemCutsShortIsAnError) {
  const std::string message = in_child([&]() -> std::string {
    const ObjectLayout layout(kSizes, kBlock);
    cpu::ObjectFile object(path + "/object", layout);
    const auto engine = cpu::make_io_engine(AioConfig{});
    Parts one(kSizes, 1), two(kSizes, 2), three(kSizes, 3), back(kSizes, 4);
    object.write(*engine, one.span());
    object.write(*engine, two.span());
    std::signal(SIGXFSZ, SIG_IGN);
    const auto bytes = static_cast<rlim_t>(layout.slot_bytes() + 16384);  // within a block
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string said = message_of([&] { object.write(*engine, three.span()); });
    object.read(*engine, back.span());
    return back == two ? said : "the generation before is lost";
  });
  EXPECT_NE(message.find("/object: cannot write"), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
}

TEST_F(SystemTest, WhatAKilledRunLeftIsRemovedByTheNextAndNothingElse) {
  fs::create_directories(path + "/zerolab-notes");
  std::ofstream(path + "/zerolab-notes/mine") << "mine";
  fs::create_directories(path + "/zerolab-1-0-rank0x");
  const auto living = cpu::make_file_storage(path, 0, AioConfig{});
  living->create("weights", ObjectLayout({5000}, kBlock));
  const auto folders_of = [&](pid_t process) {
    const std::string name = "zerolab-" + std::to_string(process) + "-";
    return std::count_if(
        fs::directory_iterator(path), fs::directory_iterator(),
        [&](const auto& each) { return each.path().filename().string().starts_with(name); });
  };
  const pid_t child = fork();
  if (child == 0) {
    const auto storage = cpu::make_file_storage(path, 1, AioConfig{});
    storage->create("weights", ObjectLayout({5000}, kBlock));
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(folders_of(child), 1);
  const auto next = cpu::make_file_storage(path, 0, AioConfig{});
  EXPECT_EQ(folders_of(child), 0);
  EXPECT_EQ(folders_of(getpid()), 2) << "the living run's and the new one's";
  EXPECT_TRUE(fs::exists(path + "/zerolab-notes/mine"));
  EXPECT_TRUE(fs::exists(path + "/zerolab-1-0-rank0x"));
}

TEST_F(SystemTest, ObjectsMayOutnumberTheDescriptors) {
  EXPECT_EQ(in_child([&]() -> std::string {
              const rlimit limit{32, 32};
              setrlimit(RLIMIT_NOFILE, &limit);
              const auto storage = cpu::make_file_storage(path, 0, AioConfig{});
              const ObjectLayout layout({5000}, kBlock);
              for (int i = 0; i < 100; ++i) {
                Parts parts({5000}, static_cast<unsigned>(i)), back({5000}, 1000);
                const ObjectId object = storage->create("w" + std::to_string(i), layout);
                storage->write(object, parts.span());
                storage->read(object, back.span());
                if (!(back == parts)) return "other data came back";
              }
              return "";
            }),
            "");
}

// In a mount namespace of the child's own; needs the right to mount.
TEST_F(SystemTest, AFullDiskIsNamedAndNothingStays) {
  const std::string outcome = in_child([&]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m") != 0) {
      return "skip";
    }
    const auto storage = cpu::make_file_storage(path, 0, AioConfig{});
    const std::string message =
        message_of([&] { storage->create("big", ObjectLayout({1 << 20}, 4096)); });
    return file_below(path).empty() ? message : "a file stays";
  });
  if (outcome == "skip") GTEST_SKIP() << "this user may not mount a small file system";
  EXPECT_NE(outcome.find("/big: no room for 2105344 bytes: No space left on device; free some"),
            std::string::npos)
      << outcome;
}

// From now on this process gets `code` for the system call whose argument has the bits.
bool forbid(long call, unsigned argument, std::uint32_t bits, int code) {
  const auto offset =
      static_cast<std::uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::string access_without(const std::string& folder, bool ring, bool direct) {
  return in_child([&]() -> std::string {
    const bool done = (ring || forbid(SYS_io_uring_setup, 0, ~0U, EPERM)) &&
                      (direct || forbid(SYS_openat, 2, O_DIRECT, EINVAL));
    if (!done) return "skip";
    const std::string wrong = round_trip(folder);
    return wrong.empty() ? cpu::describe_file_access(folder) : wrong;
  });
}

TEST_F(SystemTest, DoesWithoutIoUringAndWithoutDirectAccessEachAlone) {
  const std::string all = access_without(path, true, true);
  if (all != "io_uring, O_DIRECT") GTEST_SKIP() << "files are reached by " << all;
  const std::string plain = access_without(path, false, true);
  if (plain == "skip") GTEST_SKIP() << "this user may not filter system calls";
  EXPECT_EQ(plain, "pread/pwrite, O_DIRECT; the kernel forbids io_uring: Operation not permitted");
  EXPECT_EQ(access_without(path, true, false), "io_uring, page cache (no O_DIRECT in this folder)");
  EXPECT_EQ(access_without(path, false, false),
            "pread/pwrite, page cache (no O_DIRECT in this folder); the kernel forbids io_uring: "
            "Operation not permitted");
}

}  // namespace
}  // namespace zl::test
