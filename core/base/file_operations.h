// The operations on files that this process is in, so that one that does not end can be named.
// Ownership: each refers to its caller's path. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace zl {

// A read, a write or what else waits for a disk: under way while this lives.
class FileOperation {
 public:
  // `doing`: "write"; both outlive it.
  FileOperation(const std::string& path, const char* doing);
  ~FileOperation();
  FileOperation(const FileOperation&) = delete;
  FileOperation& operator=(const FileOperation&) = delete;

 private:
  std::int64_t number_;
};

struct FileOperationUnderWay {
  std::int64_t number = 0;  // no other has it
  std::string path, doing;
};
// Of those under way the one that began first; none where none is.
std::optional<FileOperationUnderWay> oldest_file_operation();

}  // namespace zl
