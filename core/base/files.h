// Files: read, written so that they appear whole or not at all, and the other operations that
// change the disk, so that a test can fail or end the process at any of them.
// Ownership: InputFile and AtomicFile own their open files; AtomicFile removes its temporary one
// unless commit() succeeded. Threads: an InputFile may be read by many, one writer per AtomicFile;
// several processes may write the same target, the last one wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zl {

// Of configurations, results and vocabularies.
inline constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 20;

// The bytes of a file. Throws Error{invalid} naming the path when it is missing, a folder,
// unreadable, or has more bytes than `most`, of which no more are read.
std::string read_file(const std::string& path, std::int64_t most = kMaxFileBytes);

// Whether there is a file of bytes; false also where one cannot be looked for.
bool is_file(const std::string& path);

// A regular file, open for reading. What else may have the name (a folder, a FIFO, a device) is
// refused at once; opening never waits.
class InputFile {
 public:
  // Error{invalid} naming the path and what is there instead.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // when it was opened
  // All of `bytes`, from `offset` on. Error{invalid} when the file has been cut short since.
  void read(std::int64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// Writes beside the target, syncs, then renames over it. Only a regular file is replaced: links
// are followed and stay; devices, FIFOs and open files (/dev/stdout) are written to as they are;
// folders, disks and sockets are refused. Every failure throws Error{failed} naming the file, the
// system's reason and the fix.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // creates <target>.tmp<number> beside it
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();  // fsync, rename, fsync of the folder

 private:
  void open_beside();
  void open_in_place();
  std::ptrdiff_t put(std::span<const std::byte> piece) const;
  void push();  // to the disk
  int close_file();

  std::string path_;       // as it was given
  std::string target_;     // behind its links
  std::string temporary_;  // empty: none, the target is written to as it is
  int descriptor_ = -1;
  std::int64_t written_ = 0, pushed_ = 0;
};

// Whether a file is one that an AtomicFile for `path` was killed over.
bool is_temporary_of(std::string_view file, std::string_view path);

// With its parents, so that it outlives a power cut. Throws Error{failed} naming it.
void make_folders(const std::string& path);
// Of a file, a link or an empty folder; false, and the system's reason in errno, when it stays.
bool remove_entry(const std::string& path);
bool rename_entry(const std::string& path, const std::string& to);
// Each takes the other's name, at once; false where one is missing or the file system cannot.
bool exchange_entries(const std::string& path, const std::string& other);

// Of tests: asked before every operation that changes the disk, it returns 0, or the error (errno)
// that the operation fails with; it may end the process. nullptr, as at first: there is none.
using FileFault = int (*)();
void set_file_fault(FileFault fault);

}  // namespace zl
