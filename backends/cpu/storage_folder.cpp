#include "backends/cpu/storage_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"

namespace zl::cpu {
namespace {

std::string name_of(int process, int number, int rank) {
  return "zerolab-" + std::to_string(process) + "-" + std::to_string(number) + "-rank" +
         std::to_string(rank);
}

bool is_storage_folder(const std::string& name) {
  int process = 0, number = 0, rank = 0;
  return std::sscanf(name.c_str(), "zerolab-%d-%d-rank%d", &process, &number, &rank) == 3 &&
         name == name_of(process, number, rank);
}

// "optimizer-3", "weights-0".
bool is_object(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
  });
}

int open_folder(int parent, const std::string& name) {
  return ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

bool is_own(const struct stat& info) { return info.st_uid == ::geteuid(); }

[[noreturn]] void fail(const char* doing, const std::string& path, int code) {
  const char* fix = code == ENOENT || code == ENOTDIR
                        ? "; make the folder or choose another nvme_path"
                        : "; choose an nvme_path that you may write to";
  throw Error(ErrorCode::failed, std::string("nvme_path: cannot ") + doing + " " + path + ": " +
                                     std::strerror(code) + fix);
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again), &::closedir);
  if (!listing) {
    if (again >= 0) ::close(again);
    return names;
  }
  while (const dirent* entry = ::readdir(listing.get())) names.emplace_back(entry->d_name);
  return names;
}

// Objects only: what else somebody put there stays, and the folder with it.
void remove_folder(int parent, const std::string& name, int folder) {
  for (const std::string& file : names_in(folder)) {
    struct stat info {};
    if (is_object(file) && ::fstatat(folder, file.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode) && is_own(info)) {
      ::unlinkat(folder, file.c_str(), 0);
    }
  }
  ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

bool holds_objects(int folder) {
  const std::vector<std::string> names = names_in(folder);
  return std::any_of(names.begin(), names.end(), is_object);
}

// A folder that another rank has made and not locked yet may be taken, too: it is empty, and made
// again. Where the file system has no locks, nothing counts as left behind.
void remove_leftovers(int parent, const std::string& path) {
  for (const std::string& name : names_in(parent)) {
    if (!is_storage_folder(name)) continue;
    const int folder = open_folder(parent, name);
    if (folder < 0) continue;
    struct stat info {};
    if (::fstat(folder, &info) == 0 && is_own(info) && ::flock(folder, LOCK_EX | LOCK_NB) == 0) {
      if (holds_objects(folder))
        log_info(path + "/" + name + ": removing what a run that was killed left behind");
      remove_folder(parent, name, folder);
    }
    ::close(folder);
  }
}

}  // namespace

void StorageFolder::Descriptor::close() {
  if (value >= 0) ::close(value);
  value = -1;
}

StorageFolder::StorageFolder(const std::string& parent, int rank) {
  static std::atomic<int> count{0};
  name_ = name_of(getpid(), count++, rank);
  path_ = parent + "/" + name_;
  parent_.value = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent_.value < 0) fail("make", path_, errno);
  remove_leftovers(parent_.value, parent);
  while (!make_and_lock()) {
  }
}

// False when another run took the new folder for a leftover before the lock was there.
bool StorageFolder::make_and_lock() {
  folder_.close();
  const int parent = parent_.value;
  if (::mkdirat(parent, name_.c_str(), 0700) != 0) fail("make", path_, errno);
  const int folder = folder_.value = open_folder(parent, name_);
  if (folder < 0 && errno == ENOENT) return false;
  if (folder < 0) fail("lock", path_, errno);
  ::flock(folder, LOCK_EX);
  struct stat made {};
  struct stat there {};
  return ::fstat(folder, &made) == 0 &&
         ::fstatat(parent, name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         made.st_ino == there.st_ino && made.st_dev == there.st_dev;
}

StorageFolder::~StorageFolder() { remove_folder(parent_.value, name_, folder_.value); }

}  // namespace zl::cpu
