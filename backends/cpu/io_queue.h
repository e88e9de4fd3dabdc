// The raw door to the kernel: requests go in, results come out, unchecked (engines check them).
// Ownership: a queue owns its ring; the memory of a request stays the caller's until its result is
// out. Threads: one call at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/io_engine.h"

namespace zl::cpu {

struct IoResult {
  std::uint64_t tag = 0;
  std::int64_t moved = 0;  // bytes, or the negative errno
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  virtual std::string name() const = 0;
  // Starts the requests, by one system call where there is one for several; tags[i] names
  // requests[i]. Error{failed} when the queue itself fails: nothing is in flight then, and the
  // queue is of no more use.
  virtual void submit(std::span<const IoRequest> requests, std::span<const std::uint64_t> tags) = 0;
  // Appends the results of at least `least` of the requests in flight.
  virtual void wait(std::int64_t least, std::vector<IoResult>& results) = 0;
};

// pread and pwrite, one request after the other.
std::unique_ptr<IoQueue> make_plain_queue();
// io_uring; nullptr, with the reason, where it was not built in or the kernel forbids it.
std::unique_ptr<IoQueue> make_uring_queue(std::int64_t depth, std::string& why_not);
// The same queue; when a call of the kernel's under it moves nothing for `timeout` (0: for ever),
// the process says which file and ends: memory that the kernel may still write cannot be given
// back.
std::unique_ptr<IoQueue> watched(std::unique_ptr<IoQueue> queue, std::chrono::milliseconds timeout);
// io_uring where there is one, else plain; watched.
std::unique_ptr<IoQueue> make_io_queue(std::int64_t depth, std::chrono::milliseconds timeout);

}  // namespace zl::cpu
