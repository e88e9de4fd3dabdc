// An I/O queue that does something else than it was asked to at the n-th request, and watches how
// it is used. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/io_queue.h"

namespace zl::test {

struct QueueFault {
  std::int64_t at = -1;     // the request it happens to, counted from 0; -1: none
  bool forever = false;     // to all later ones too
  std::int64_t result = 0;  // what is reported: a negative errno, or
  std::int64_t moves = -1;  // >= 0: only so many bytes are moved
};

struct QueueUse {
  std::int64_t requests = 0, bytes = 0, submits = 0;
  std::int64_t flying = 0, most_flying = 0;
  std::int64_t largest_submit = 0;
  std::int64_t refills = 0;  // submits while others were in flight
};

class FaultyQueue final : public cpu::IoQueue {
 public:
  explicit FaultyQueue(QueueUse& use, QueueFault fault = {}) : use_(use), fault_(fault) {}
  std::string name() const override { return "faulty"; }

  void submit(std::span<const cpu::IoRequest> requests,
              std::span<const std::uint64_t> tags) override {
    if (requests.empty()) return;
    ++use_.submits;
    use_.refills += use_.flying > 0 ? 1 : 0;
    use_.largest_submit = std::max(use_.largest_submit, static_cast<std::int64_t>(requests.size()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ready_.push_back({tags[i], perform(requests[i])});
    }
    use_.flying = static_cast<std::int64_t>(ready_.size());
    use_.most_flying = std::max(use_.most_flying, use_.flying);
  }

  // Exactly as many as are asked for, the last started first.
  void wait(std::int64_t least, std::vector<cpu::IoResult>& results) override {
    for (; least > 0; --least) {
      results.push_back(ready_.back());
      ready_.pop_back();
    }
    use_.flying = static_cast<std::int64_t>(ready_.size());
  }

 private:
  std::int64_t perform(cpu::IoRequest request) {
    const std::int64_t index = use_.requests++;
    const bool hit = fault_.at >= 0 && (fault_.forever ? index >= fault_.at : index == fault_.at);
    if (hit && fault_.moves < 0) return fault_.result;
    if (hit) request.bytes = std::min(request.bytes, fault_.moves);
    if (request.bytes == 0) return 0;
    std::vector<cpu::IoResult> done;
    const std::uint64_t tag = 0;
    real_->submit({&request, 1}, {&tag, 1});
    real_->wait(1, done);
    use_.bytes += done.front().moved;
    return done.front().moved;
  }

  QueueUse& use_;
  QueueFault fault_;
  std::unique_ptr<cpu::IoQueue> real_ = cpu::make_plain_queue();
  std::vector<cpu::IoResult> ready_;
};

}  // namespace zl::test
