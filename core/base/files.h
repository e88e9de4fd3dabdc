// Whole files: read at once, or written so that they appear whole or not at all.
// Ownership: AtomicFile owns its open temporary file and removes it unless commit() succeeded.
// Threads: one writer per object; several processes may write the same target, the last one wins.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace zl {

// The bytes of a file. Throws Error{invalid} naming the path when it is missing, a folder, or
// unreadable.
std::string read_file(const std::string& path);

// Writes beside the target, syncs, then renames over it. Every failure throws Error{failed} naming
// the file and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // creates <path>.tmp<number> beside it
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();  // fsync, rename, fsync of the folder

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace zl
