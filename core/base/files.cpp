#include "core/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "core/base/error.h"

namespace zl {
namespace {

[[noreturn]] void fail(const std::string& path, const char* doing, int reason) {
  throw Error(ErrorCode::failed, path + ": cannot " + doing + ": " + std::strerror(reason));
}

// Makes the rename itself durable; a file system that cannot sync folders is left alone.
void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(ErrorCode::invalid, path + ": is a folder, not a file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw Error(ErrorCode::invalid,
                path + ": cannot open it (" + std::strerror(errno) + "); check the path");
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp" + std::to_string(std::random_device{}())) {
  constexpr mode_t kOrdinary = 0666;  // the umask takes its share
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOrdinary);
  if (descriptor_ < 0) fail(path_, "create a temporary file beside it", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(path_, "write", errno);
    }
    bytes = bytes.subspan(written);
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail(path_, "sync", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, "close", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "rename onto it", errno);
  temporary_.clear();
  sync_folder_of(path_);
}

}  // namespace zl
