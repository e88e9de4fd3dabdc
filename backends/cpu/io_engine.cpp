#include "backends/cpu/io_engine.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/io_queue.h"

namespace zl::cpu {
namespace {

// Each engine takes a contiguous share of the requests.
class ParallelEngine final : public IoEngine {
 public:
  explicit ParallelEngine(std::vector<std::unique_ptr<IoEngine>> engines)
      : engines_(std::move(engines)) {}

  std::string name() const override {
    return engines_.front()->name() + " x " + std::to_string(engines_.size());
  }

  void run(std::span<const IoRequest> requests) override {
    const std::size_t share = (requests.size() + engines_.size() - 1) / engines_.size();
    std::vector<std::exception_ptr> errors(engines_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < engines_.size() && i * share < requests.size(); ++i) {
        const auto part = requests.subspan(i * share, std::min(share, requests.size() - i * share));
        threads.emplace_back([this, part, i, &errors] {
          try {
            engines_[i]->run(part);
          } catch (...) {
            errors[i] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  std::vector<std::unique_ptr<IoEngine>> engines_;
};

}  // namespace

IoError::IoError(const IoRequest& request, int code)
    : std::runtime_error(code != 0       ? std::strerror(code)
                         : request.write ? "the system takes no more bytes"
                                         : "the file ends too early"),
      request_(request),
      code_(code) {}

std::unique_ptr<IoEngine> make_io_engine(const AioConfig& config,
                                         std::chrono::milliseconds timeout) {
  const auto one = [&] {
    return make_io_engine(make_io_queue(config.queue_depth, timeout), config);
  };
  if (config.threads == 1) return one();
  std::vector<std::unique_ptr<IoEngine>> engines;
  for (std::int64_t i = 0; i < config.threads; ++i) engines.push_back(one());
  return std::make_unique<ParallelEngine>(std::move(engines));
}

}  // namespace zl::cpu
