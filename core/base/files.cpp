#include "core/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/file_operations.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemporary = ".tmp";
// What is read, written or synced at once: whoever waits for a disk sees that something moves.
constexpr std::size_t kPiece = std::size_t{16} << 20;

std::atomic<FileFault> g_fault{nullptr};

// Whether an operation that changes the disk may begin; errno says why not.
bool may_begin() {
  const FileFault fault = g_fault.load();
  const int reason = fault == nullptr ? 0 : fault();
  if (reason != 0) errno = reason;
  return reason == 0;
}

// Of a system call that changes the disk: what it returns, -1 where it may not begin.
template <class Call>
auto change(const std::string& path, const char* doing, const Call& call) -> decltype(call()) {
  const FileOperation operation(path, doing);
  return may_begin() ? call() : -1;
}

const char* remedy(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another path";
    case EFBIG:
      return "; the file system or ulimit -f allows no file that large";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a path that you may write to";
    case ENOENT:
    case ENOTDIR:
      return "; make its folder or choose another path";
    case ENXIO:
      return "; nobody reads from it: choose another path";
    default:
      return "; choose another path";
  }
}

[[noreturn]] void fail(const std::string& path, const char* doing, int reason) {
  throw Error(ErrorCode::failed,
              path + ": cannot " + doing + ": " + std::strerror(reason) + remedy(reason));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISBLK(mode) ? "a disk" : "a device";
}

bool sync(int descriptor, const std::string& path) {
  return change(path, "sync", [&] { return ::fsync(descriptor); }) == 0;
}

// Makes what happened to its entries durable; a file system that cannot sync folders is left alone.
void sync_folder_of(const std::string& path) {
  const std::string folder = fs::absolute(path).parent_path().string();
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  sync(descriptor, folder);
  ::close(descriptor);
}

// The links of this folder are open files of a process, /dev/stdout among them.
bool is_open_file(const std::string& path) { return path.starts_with("/proc/"); }

// Where the file is or would be.
std::string behind_links(std::string path) {
  constexpr int kMost = 40;  // as the kernel has it
  for (int followed = 0; followed < kMost; ++followed) {
    std::error_code not_a_link;
    const fs::path target = fs::read_symlink(path, not_a_link);
    if (not_a_link || is_open_file(path)) return path;
    path = (fs::path(path).parent_path() / target).string();
  }
  fail(path, "follow its links", ELOOP);
}

}  // namespace

std::string read_file(const std::string& path, std::int64_t most) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw Error(ErrorCode::invalid, path + ": is a folder, not a file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw Error(ErrorCode::invalid,
                path + ": cannot open it (" + std::strerror(errno) + "); check the path");
  }
  // Pipes and devices have no size, and a file may grow: what is read counts.
  const auto size = std::filesystem::file_size(path, ignored);
  bool fits = ignored || size <= static_cast<std::uintmax_t>(most);
  std::string bytes, piece(std::size_t{1} << 16, '\0');
  while (fits && (in.read(piece.data(), std::ssize(piece)), in.gcount() > 0)) {
    bytes.append(piece, 0, static_cast<std::size_t>(in.gcount()));
    fits = std::ssize(bytes) <= most;
  }
  if (fits) return bytes;
  throw Error(ErrorCode::invalid, path + ": has more than " + format_bytes(most) +
                                      ", the most that is read of such a file; check the path");
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) {
    const int reason = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw Error(ErrorCode::invalid,
                path_ + ": cannot open it (" + std::strerror(reason) + "); check the path");
  }
  size_ = info.st_size;
  if (S_ISREG(info.st_mode)) return;
  ::close(descriptor_);
  throw Error(ErrorCode::invalid, path_ + ": is " + kind_of(info.st_mode) +
                                      ", not a regular file; give the path of a file");
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const FileOperation operation(path_, "read");
    const ssize_t got = ::pread(descriptor_, bytes.data(), std::min(bytes.size(), kPiece), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorCode::failed, path_ + ": cannot read it: " + std::strerror(errno));
    }
    if (got == 0) {
      throw Error(ErrorCode::invalid, path_ + ": ends after " + std::to_string(offset) +
                                          " bytes, but had " + std::to_string(size_) +
                                          " when it was opened; leave it alone while it is read");
    }
    offset += got;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat info {};
  const bool is_special = ::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const bool takes_bytes = is_special && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode));
  if (is_special && !takes_bytes) {
    throw Error(ErrorCode::failed,
                path_ + ": is " + kind_of(info.st_mode) + ", not a file; choose another path");
  }
  target_ = behind_links(path_);
  takes_bytes || is_open_file(target_) ? open_in_place() : open_beside();
}

void AtomicFile::open_beside() {
  constexpr mode_t kOrdinary = 0666;  // the umask takes its share
  temporary_ = target_ + kTemporary + std::to_string(std::random_device{}());
  descriptor_ = change(path_, "create", [&] {
    return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOrdinary);
  });
  if (descriptor_ < 0) fail(path_, "create a temporary file beside it", errno);
}

// A FIFO that nobody reads is an error, not a wait; what a file has already stays.
void AtomicFile::open_in_place() {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor_ < 0) fail(path_, "open it", errno);
  ::fcntl(descriptor_, F_SETFL, O_APPEND);  // writing to it waits
}

int AtomicFile::close_file() {
  const FileOperation operation(path_, "close");  // a file server may be told only now
  return ::close(std::exchange(descriptor_, -1));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close_file();
  if (!temporary_.empty()) remove_entry(temporary_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPiece));
    const ssize_t written = put(piece);
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(path_, "write", errno);
    }
    bytes = bytes.subspan(written);
    written_ += written;
    if (written_ - pushed_ >= static_cast<std::int64_t>(kPiece)) push();
  }
}

// Who reads from a FIFO or a terminal may take any time: that is no operation to be named.
std::ptrdiff_t AtomicFile::put(std::span<const std::byte> piece) const {
  const auto write = [&] { return ::write(descriptor_, piece.data(), piece.size()); };
  if (!temporary_.empty()) return change(path_, "write", write);
  return may_begin() ? write() : -1;
}

// Before commit() has all to wait for. A failure of the disk is told once: here, then.
void AtomicFile::push() {
  if (temporary_.empty()) return;
  constexpr unsigned kWritten =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const int status = change(path_, "write", [&] {
    return ::sync_file_range(descriptor_, pushed_, written_ - pushed_, kWritten);
  });
  const bool has_none = errno == EINVAL || errno == ENOSYS || errno == ESPIPE;
  if (status != 0 && !has_none) fail(path_, "write", errno);
  pushed_ = written_;
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  const bool in_place = temporary_.empty();
  if (!in_place && !sync(descriptor_, path_)) fail(path_, "sync", errno);
  if (close_file() != 0) fail(path_, "close", errno);
  if (in_place) return;
  if (!rename_entry(temporary_, target_)) fail(path_, "rename onto it", errno);
  temporary_.clear();
  sync_folder_of(target_);
}

bool is_temporary_of(std::string_view file, std::string_view path) {
  if (!file.starts_with(path)) return false;
  file.remove_prefix(path.size());
  if (!file.starts_with(kTemporary)) return false;
  file.remove_prefix(std::strlen(kTemporary));
  return !file.empty() && file.find_first_not_of("0123456789") == std::string_view::npos;
}

void make_folders(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  if (!parent.empty() && parent != path && !fs::exists(parent, ignored)) {
    make_folders(parent.string());
  }
  if (change(path, "make", [&] { return ::mkdir(path.c_str(), 0777); }) == 0) {
    return sync_folder_of(path);
  }
  const int reason = errno;  // another rank may have been first
  if (reason == EEXIST && fs::is_directory(path, ignored)) return;
  fail(path, "make the folder", reason);
}

bool remove_entry(const std::string& path) {
  return change(path, "remove", [&] { return ::remove(path.c_str()); }) == 0;
}

bool rename_entry(const std::string& path, const std::string& to) {
  return change(path, "rename", [&] { return ::rename(path.c_str(), to.c_str()); }) == 0;
}

bool exchange_entries(const std::string& path, const std::string& other) {
  return change(path, "rename", [&] {
           return ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
         }) == 0;
}

void set_file_fault(FileFault fault) { g_fault = fault; }

}  // namespace zl
