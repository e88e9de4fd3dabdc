// Moves blocks between memory and files and checks every completion.
// Ownership: an engine owns its queues, never files or memory. Threads: run() may be called from
// any thread, one call at a time per engine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "core/device/storage.h"

namespace zl::cpu {

// Of whole pages (ObjectLayout::kPage) in file and memory, as O_DIRECT asks for.
struct IoRequest {
  int file = -1;
  bool write = false;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
  // Takes the CRC32C of the first `payload` bytes, which is computed while others are under way.
  std::uint32_t* checksum = nullptr;
  std::int64_t payload = 0;
};

// What the system said of one request; code 0: it moves no more bytes (the file ends too early).
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

class IoQueue;

// Over one queue, which was made for config.queue_depth.
std::unique_ptr<IoEngine> make_io_engine(std::unique_ptr<IoQueue> queue, const AioConfig& config);
// Over the fastest queue there is, with config.threads of it side by side. timeout: as watched() of
// io_queue.h has it.
std::unique_ptr<IoEngine> make_io_engine(
    const AioConfig& config, std::chrono::milliseconds timeout = std::chrono::minutes(1));

}  // namespace zl::cpu
