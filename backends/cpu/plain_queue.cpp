#include <unistd.h>

#include <cerrno>

#include "backends/cpu/io_queue.h"

namespace zl::cpu {
namespace {

class PlainQueue final : public IoQueue {
 public:
  std::string name() const override { return "pread/pwrite"; }

  void submit(std::span<const IoRequest> requests, std::span<const std::uint64_t> tags) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const IoRequest& each = requests[i];
      const std::size_t size = each.bytes;
      const ssize_t moved = each.write ? pwrite(each.file, each.data, size, each.offset)
                                       : pread(each.file, each.data, size, each.offset);
      done_.push_back({tags[i], moved < 0 ? -errno : moved});
    }
  }

  void wait(std::int64_t, std::vector<IoResult>& results) override {
    results.insert(results.end(), done_.begin(), done_.end());
    done_.clear();
  }

 private:
  std::vector<IoResult> done_;
};

}  // namespace

std::unique_ptr<IoQueue> make_plain_queue() { return std::make_unique<PlainQueue>(); }

std::unique_ptr<IoQueue> make_io_queue(std::int64_t depth, std::chrono::milliseconds timeout) {
  std::string why_not;
  auto queue = make_uring_queue(depth, why_not);
  return watched(queue ? std::move(queue) : make_plain_queue(), timeout);
}

}  // namespace zl::cpu
