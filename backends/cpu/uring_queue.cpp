#include "backends/cpu/io_queue.h"

#ifdef ZL_HAVE_URING

#include <liburing.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace zl::cpu {
namespace {

// The ring says "again", not "failed".
bool transient(int status) { return status == -EINTR || status == -EAGAIN || status == -EBUSY; }

[[noreturn]] void ring_failed(const char* call, int status) {
  throw Error(ErrorCode::failed, std::string("io_uring: ") + call + ": " + std::strerror(-status));
}

class UringQueue final : public IoQueue {
 public:
  UringQueue(std::int64_t depth, int& error) {
    error = -io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0);
    open_ = error == 0;
  }
  ~UringQueue() override {
    if (open_) io_uring_queue_exit(&ring_);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  std::string name() const override { return "io_uring"; }

  void submit(std::span<const IoRequest> requests, std::span<const std::uint64_t> tags) override {
    for (std::size_t i = 0; i < requests.size(); ++i) prepare(requests[i], tags[i]);
    while (io_uring_sq_ready(&ring_) > 0) {
      const int status = io_uring_submit(&ring_);
      if (status > 0) flying_ += status;
      if (status >= 0 || transient(status)) continue;
      std::vector<IoResult> ignored;
      while (flying_ > 0) wait(1, ignored);  // nobody may use their memory before
      ring_failed("submit", status);
    }
  }

  void wait(std::int64_t least, std::vector<IoResult>& results) override {
    io_uring_cqe* event = nullptr;
    int status = -EINTR;
    while (transient(status)) {
      status = io_uring_wait_cqe_nr(&ring_, &event, static_cast<unsigned>(least));
    }
    if (status < 0) ring_failed("wait", status);
    unsigned head = 0, count = 0;
    io_uring_for_each_cqe(&ring_, head, event) {
      results.push_back({io_uring_cqe_get_data64(event), event->res});
      ++count;
    }
    io_uring_cq_advance(&ring_, count);
    flying_ -= count;
  }

  // Kernels before 5.6 have the ring without these two.
  bool reads_and_writes() {
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    if (probe == nullptr) return false;
    const bool both = io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                      io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
    io_uring_free_probe(probe);
    return both;
  }

 private:
  void prepare(const IoRequest& request, std::uint64_t tag) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    ZL_CHECK(entry != nullptr, "no more in flight than the queue was made for");
    const auto size = static_cast<unsigned>(request.bytes);
    const auto offset = static_cast<std::uint64_t>(request.offset);
    if (request.write) {
      io_uring_prep_write(entry, request.file, request.data, size, offset);
    } else {
      io_uring_prep_read(entry, request.file, request.data, size, offset);
    }
    io_uring_sqe_set_data64(entry, tag);
  }

  io_uring ring_{};
  bool open_ = false;
  std::int64_t flying_ = 0;
};

}  // namespace

std::unique_ptr<IoQueue> make_uring_queue(std::int64_t depth, std::string& why_not) {
  int error = 0;
  auto queue = std::make_unique<UringQueue>(depth, error);
  if (error != 0) {
    why_not = std::string("the kernel forbids io_uring: ") + std::strerror(error);
  } else if (!queue->reads_and_writes()) {
    why_not = "the kernel's io_uring cannot read and write (5.6 and newer can)";
  } else {
    return queue;
  }
  return nullptr;
}

}  // namespace zl::cpu

#else

namespace zl::cpu {

std::unique_ptr<IoQueue> make_uring_queue(std::int64_t, std::string& why_not) {
  why_not = "built without liburing (apt-get install liburing-dev)";
  return nullptr;
}

}  // namespace zl::cpu

#endif
