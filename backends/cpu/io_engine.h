// Moves blocks between memory and files and checks every completion.
// Ownership: an engine owns its queues, never files or memory. Threads: run() may be called from
// any thread, one call at a time per engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "core/device/storage.h"

namespace zl::cpu {

struct IoRequest {
  int file = -1;
  bool write = false;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
};

// What the system said of one request; code 0: the file ends too early.
class IoError : public std::runtime_error {
 public:
  IoError(const IoRequest& request, int code);
  const IoRequest& request() const { return request_; }
  int code() const { return code_; }

 private:
  IoRequest request_;
  int code_;
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  virtual std::string name() const = 0;
  // Completes all requests: the rest of a short transfer and what was interrupted is asked for
  // again. Throws IoError for the first that fails, after all others have ended.
  virtual void run(std::span<const IoRequest> requests) = 0;
};

// pread and pwrite, one request after the other.
std::unique_ptr<IoEngine> make_plain_engine();
// io_uring; nullptr, with the reason, where it was not built in or the kernel forbids it.
std::unique_ptr<IoEngine> make_uring_engine(const AioConfig& config, std::string& why_not);
// The fastest there is, with config.threads of it side by side.
std::unique_ptr<IoEngine> make_io_engine(const AioConfig& config);

}  // namespace zl::cpu
