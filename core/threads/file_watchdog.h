// Ends the process when an operation of core/base/files gets nowhere for too long: the kernel
// waits for a disk or a file server as long as that likes.
// Ownership: owns a thread that looks once a second. Threads: one constructs and destroys it.
#pragma once

#include <chrono>
#include <thread>

namespace zl {

class FileWatchdog {
 public:
  // patience: 0: for ever. The process ends with ErrorCode::failed and the name of the file.
  explicit FileWatchdog(std::chrono::milliseconds patience);

 private:
  std::jthread thread_;
};

}  // namespace zl
