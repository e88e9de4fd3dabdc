#include "scenarios/run/corpus.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "bible -f 'gen1:1-rev22:21' 2>/dev/null </dev/null";
constexpr int kNotFound = 127;  // what the shell returns for an unknown program

// The XDG base directory specification ignores relative values.
fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fs::path(cache) / "zerolab";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fs::path(home) / ".cache" / "zerolab";
  throw Error(ErrorCode::failed,
              "neither XDG_CACHE_HOME nor HOME is set; set one, or give a text with --data FILE");
}

// Copies the output of kCommand into `file`; returns the exit status, -1 for a killed program.
int run_bible(AtomicFile& file) {
  std::FILE* pipe = ::popen(kCommand, "r");
  if (pipe == nullptr) throw Error(ErrorCode::failed, "cannot start a shell to run `bible`");
  std::array<char, 1 << 16> buffer;
  std::size_t total = 0;
  try {
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      file.write(std::string_view(buffer.data(), got));
      total += got;
    }
  } catch (...) {
    ::pclose(pipe);
    throw;
  }
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status)) return -1;
  return WEXITSTATUS(status) == 0 && total == 0 ? -1 : WEXITSTATUS(status);
}

}  // namespace

std::string king_james_bible() {
  const fs::path folder = cache_folder();
  const fs::path path = folder / "kjv.txt";
  std::error_code error;
  if (fs::exists(path, error)) return path.string();
  fs::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCode::failed, folder.string() + ": cannot create it: " + error.message() +
                                       "; set XDG_CACHE_HOME to a writable folder");
  }
  AtomicFile file(path.string());
  const int status = run_bible(file);
  if (status == kNotFound) {
    throw Error(ErrorCode::unavailable,
                "the program `bible` is not installed; run: apt-get install bible-kjv, or give a "
                "text with --data FILE");
  }
  if (status != 0) {
    throw Error(ErrorCode::failed, "`bible -f 'gen1:1-rev22:21'` gave no text (status " +
                                       std::to_string(status) + "); give a text with --data FILE");
  }
  file.commit();
  return path.string();
}

}  // namespace zl
