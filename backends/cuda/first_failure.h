// What has failed on a device: after a failed kernel CUDA refuses all that follows, so the first
// failure is kept and said again.
// Ownership: a value. Threads: one rank's thread.
#pragma once

#include <string>

#include "backends/cuda/kernel/stream.h"
#include "core/base/error.h"

namespace zl::cuda {

class FirstFailure {
 public:
  // rank: for messages. synchronous: every op is waited for, so an error names the op that made it.
  FirstFailure(int rank, bool synchronous) : rank_(rank), synchronous_(synchronous) {}

  bool happened() const { return !message_.empty(); }
  // Throws Error{failed} once there is one that lasts.
  void refuse() const;
  // Throws `error` as of `what`, and keeps it if it lasts: a refused launch or a wrong argument
  // does not. any: a stream of the device.
  [[noreturn]] void report(const std::string& what, const Error& error, Stream any);

 private:
  int rank_;
  bool synchronous_;
  std::string message_;
};

}  // namespace zl::cuda
