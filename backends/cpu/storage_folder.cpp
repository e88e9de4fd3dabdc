#include "backends/cpu/storage_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/log.h"

namespace zl::cpu {
namespace {

namespace fs = std::filesystem;

std::string name_of(int process, int number, int rank) {
  return "zerolab-" + std::to_string(process) + "-" + std::to_string(number) + "-rank" +
         std::to_string(rank);
}

bool is_storage_folder(const std::string& name) {
  int process = 0, number = 0, rank = 0;
  return std::sscanf(name.c_str(), "zerolab-%d-%d-rank%d", &process, &number, &rank) == 3 &&
         name == name_of(process, number, rank);
}

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

[[noreturn]] void fail(const char* doing, const std::string& path, int code) {
  const char* fix = code == ENOENT || code == ENOTDIR
                        ? "; make the folder or choose another nvme_path"
                        : "; choose an nvme_path that you may write to";
  throw Error(ErrorCode::failed, std::string("nvme_path: cannot ") + doing + " " + path + ": " +
                                     std::strerror(code) + fix);
}

// Objects only: what else somebody put there stays, and the folder with it.
void remove_folder(const std::string& path) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.is_regular_file(ignored)) ::unlink(entry.path().c_str());
  }
  ::rmdir(path.c_str());
}

// Where the file system has no locks, nothing counts as left behind.
void remove_leftovers(const std::string& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (!is_storage_folder(entry.path().filename().string())) continue;
    const int descriptor = open_folder(entry.path().string());
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      log_info(entry.path().string() + ": removing what a run that was killed left behind");
      remove_folder(entry.path().string());
    }
    ::close(descriptor);
  }
}

}  // namespace

StorageFolder::StorageFolder(const std::string& parent, int rank) {
  static std::atomic<int> count{0};
  remove_leftovers(parent);
  path_ = parent + "/" + name_of(getpid(), count++, rank);
  while (!make_and_lock()) {
  }
}

// False when another run took the new folder for a leftover before the lock was there.
bool StorageFolder::make_and_lock() {
  if (::mkdir(path_.c_str(), 0700) != 0) fail("make", path_, errno);
  lock_ = open_folder(path_);
  if (lock_ < 0 && errno == ENOENT) return false;
  if (lock_ < 0) fail("lock", path_, errno);
  ::flock(lock_, LOCK_EX);
  if (::access(path_.c_str(), F_OK) == 0) return true;
  ::close(lock_);
  return false;
}

StorageFolder::~StorageFolder() {
  remove_folder(path_);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace zl::cpu
