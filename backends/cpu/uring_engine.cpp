#include "backends/cpu/io_engine.h"

#ifdef ZL_HAVE_URING

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

namespace zl::cpu {
namespace {

class UringEngine final : public IoEngine {
 public:
  UringEngine(const AioConfig& config, int& error)
      : depth_(static_cast<std::size_t>(config.queue_depth)),
        single_submit_(config.single_submit),
        refill_(config.overlap_events) {
    error = -io_uring_queue_init(static_cast<unsigned>(depth_), &ring_, 0);
    ready_ = error == 0;
  }
  ~UringEngine() override {
    if (ready_) io_uring_queue_exit(&ring_);
  }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  std::string name() const override { return "io_uring"; }

  void run(std::span<const IoRequest> requests) override {
    rest_.assign(requests.begin(), requests.end());
    std::size_t next = 0;
    flying_ = 0;
    failure_.reset();
    while (next < rest_.size() || flying_ > 0) {
      const bool may_start = refill_ || flying_ == 0;
      while (may_start && !failure_ && next < rest_.size() && flying_ < depth_) start(next++);
      if (failure_) next = rest_.size();
      if (!single_submit_) submit();
      if (flying_ > 0) reap();
    }
    if (failure_) throw IoError(*failure_);
  }

 private:
  void start(std::size_t index) {
    const IoRequest& request = rest_[index];
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    const auto size = static_cast<unsigned>(request.bytes);
    const auto offset = static_cast<std::uint64_t>(request.offset);
    if (request.write) {
      io_uring_prep_write(entry, request.file, request.data, size, offset);
    } else {
      io_uring_prep_read(entry, request.file, request.data, size, offset);
    }
    io_uring_sqe_set_data64(entry, index);
    ++flying_;
    if (single_submit_) submit();
  }

  void submit() {
    int status = io_uring_submit(&ring_);
    while (status == -EINTR || status == -EAGAIN || status == -EBUSY) {
      status = io_uring_submit(&ring_);
    }
    if (status < 0) throw IoError(rest_.front(), -status);
  }

  // Takes at least one completion, and every one that is there.
  void reap() {
    io_uring_cqe* event = nullptr;
    int status = io_uring_wait_cqe(&ring_, &event);
    while (status == -EINTR) status = io_uring_wait_cqe(&ring_, &event);
    if (status < 0) throw IoError(rest_.front(), -status);
    do {
      const std::size_t index = io_uring_cqe_get_data64(event);
      const int result = event->res;
      io_uring_cqe_seen(&ring_, event);
      --flying_;
      finish(index, result);
    } while (io_uring_peek_cqe(&ring_, &event) == 0);
  }

  void finish(std::size_t index, int result) {
    IoRequest& request = rest_[index];
    if (result == -EINTR || result == -EAGAIN) return start(index);
    if (result <= 0) {
      if (!failure_) failure_.emplace(request, -result);
      return;
    }
    request.data += result;
    request.offset += result;
    request.bytes -= result;
    if (request.bytes > 0) start(index);
  }

  io_uring ring_{};
  bool ready_ = false;
  std::size_t depth_;
  bool single_submit_, refill_;
  std::vector<IoRequest> rest_;  // of each request, what is still to be moved
  std::size_t flying_ = 0;
  std::optional<IoError> failure_;
};

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(const AioConfig& config, std::string& why_not) {
  int error = 0;
  auto engine = std::make_unique<UringEngine>(config, error);
  if (error == 0) return engine;
  why_not = std::string("the kernel forbids io_uring: ") + std::strerror(error);
  return nullptr;
}

}  // namespace zl::cpu

#else

namespace zl::cpu {

std::unique_ptr<IoEngine> make_uring_engine(const AioConfig&, std::string& why_not) {
  why_not = "built without liburing";
  return nullptr;
}

}  // namespace zl::cpu

#endif
