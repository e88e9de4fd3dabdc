// The engine over one queue: keeps its depth in flight and judges each result.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/io_queue.h"
#include "core/base/crc32c.h"

namespace zl::cpu {
namespace {

constexpr int kMostStalls = 100;  // attempts in a row that move nothing

class QueueEngine final : public IoEngine {
 public:
  QueueEngine(std::unique_ptr<IoQueue> queue, const AioConfig& config)
      : queue_(std::move(queue)), config_(config) {}

  std::string name() const override { return queue_->name(); }

  void run(std::span<const IoRequest> requests) override {
    requests_ = requests;
    rest_.assign(requests.begin(), requests.end());
    stalls_.assign(requests.size(), 0);
    unchecked_.clear();
    again_.clear();
    failure_.reset();
    for (next_ = 0, flying_ = 0; true;) {
      launch();
      take_checksums();
      if (flying_ == 0) break;
      results_.clear();
      queue_->wait(config_.overlap_events ? 1 : flying_, results_);
      for (const IoResult& result : results_) finish(result);
    }
    if (failure_) throw IoError(*failure_);
  }

 private:
  // What is to be repeated, then new requests up to the depth.
  void launch() {
    if (!config_.overlap_events && flying_ > 0) return;
    std::vector<std::uint64_t>& chosen = chosen_;
    chosen.clear();
    if (!failure_) {
      std::swap(chosen, again_);
      const std::size_t room = config_.queue_depth - flying_;
      while (chosen.size() < room && next_ < rest_.size()) {
        if (rest_[next_].write) unchecked_.push_back(next_);
        chosen.push_back(next_++);
      }
    }
    batch_.clear();
    for (const std::uint64_t index : chosen) batch_.push_back(rest_[index]);
    const std::size_t step = config_.single_submit ? 1 : std::max<std::size_t>(1, batch_.size());
    for (std::size_t i = 0; i < batch_.size(); i += step) {
      queue_->submit(std::span(batch_).subspan(i, step), std::span(chosen).subspan(i, step));
    }
    flying_ += static_cast<std::int64_t>(batch_.size());
  }

  void finish(const IoResult& result) {
    --flying_;
    IoRequest& rest = rest_[result.tag];
    const bool interrupted = result.moved == -EINTR || result.moved == -EAGAIN;
    if (result.moved < 0 && !interrupted) return fail(rest, static_cast<int>(-result.moved));
    if (result.moved == 0 && !rest.write) return fail(rest, 0);
    // O_DIRECT goes on at a page only.
    const std::int64_t moved = std::max<std::int64_t>(result.moved, 0);
    const std::int64_t step = moved < rest.bytes ? moved - moved % ObjectLayout::kPage : moved;
    rest.data += step;
    rest.offset += step;
    rest.bytes -= step;
    if (rest.bytes == 0) {
      if (!rest.write) unchecked_.push_back(result.tag);
      return;
    }
    int& stalls = stalls_[result.tag];
    stalls = step > 0 ? 0 : stalls + 1;
    if (stalls == kMostStalls) return fail(rest, interrupted ? static_cast<int>(-result.moved) : 0);
    if (stalls > 0) std::this_thread::yield();
    again_.push_back(result.tag);
  }

  void fail(const IoRequest& rest, int code) {
    if (!failure_) failure_.emplace(rest, code);
  }

  // Of what was just written and of what has arrived: the processor works while the disk does.
  void take_checksums() {
    for (const std::uint64_t index : unchecked_) {
      const IoRequest& request = requests_[index];
      if (request.checksum != nullptr) *request.checksum = crc32c(request.data, request.payload);
    }
    unchecked_.clear();
  }

  std::unique_ptr<IoQueue> queue_;
  AioConfig config_;
  std::span<const IoRequest> requests_;
  std::vector<IoRequest> rest_;  // of each request, what is still to be moved
  std::vector<int> stalls_;
  std::size_t next_ = 0;
  std::int64_t flying_ = 0;
  std::vector<std::uint64_t> again_, chosen_, unchecked_;  // indices of requests
  std::vector<IoRequest> batch_;
  std::vector<IoResult> results_;
  std::optional<IoError> failure_;
};

}  // namespace

std::unique_ptr<IoEngine> make_io_engine(std::unique_ptr<IoQueue> queue, const AioConfig& config) {
  return std::make_unique<QueueEngine>(std::move(queue), config);
}

}  // namespace zl::cpu
