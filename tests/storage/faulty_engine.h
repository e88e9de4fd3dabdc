// An I/O engine that fails the n-th request, and counts what it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "backends/cpu/io_queue.h"

namespace zl::test {

struct IoCount {
  std::int64_t requests = 0, bytes = 0;
  std::int64_t fails_at = -1;  // the request that fails; -1: none
  int code = 0;
};

class FaultyEngine final : public cpu::IoEngine {
 public:
  explicit FaultyEngine(std::shared_ptr<IoCount> count) : count_(std::move(count)) {}
  std::string name() const override { return "faulty"; }

  void run(std::span<const cpu::IoRequest> requests) override {
    for (const cpu::IoRequest& request : requests) {
      if (count_->requests++ == count_->fails_at) throw cpu::IoError(request, count_->code);
      count_->bytes += request.bytes;
      real_->run({&request, 1});
    }
  }

 private:
  std::shared_ptr<IoCount> count_;
  std::unique_ptr<cpu::IoEngine> real_ = cpu::make_io_engine(cpu::make_plain_queue(), {});
};

}  // namespace zl::test
