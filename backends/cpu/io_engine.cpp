#include "backends/cpu/io_engine.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace zl::cpu {
namespace {

class PlainEngine final : public IoEngine {
 public:
  std::string name() const override { return "pread/pwrite"; }

  void run(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) complete(request);
  }

 private:
  static void complete(IoRequest rest) {
    while (rest.bytes > 0) {
      const auto size = static_cast<std::size_t>(rest.bytes);
      const ssize_t done = rest.write ? pwrite(rest.file, rest.data, size, rest.offset)
                                      : pread(rest.file, rest.data, size, rest.offset);
      if (done < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (done < 0) throw IoError(rest, errno);
      if (done == 0) throw IoError(rest, 0);
      rest.data += done;
      rest.offset += done;
      rest.bytes -= done;
    }
  }
};

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

std::unique_ptr<IoEngine> make_one(const AioConfig& config) {
  std::string why_not;
  auto engine = make_uring_engine(config, why_not);
  return engine ? std::move(engine) : make_plain_engine();
}

}  // namespace

IoError::IoError(const IoRequest& request, int code)
    : std::runtime_error(code == 0 ? "the file ends too early" : std::strerror(code)),
      request_(request),
      code_(code) {}

std::unique_ptr<IoEngine> make_plain_engine() { return std::make_unique<PlainEngine>(); }

std::unique_ptr<IoEngine> make_io_engine(const AioConfig& config) {
  if (config.threads == 1) return make_one(config);
  std::vector<std::unique_ptr<IoEngine>> engines;
  for (std::int64_t i = 0; i < config.threads; ++i) engines.push_back(make_one(config));
  return std::make_unique<ParallelEngine>(std::move(engines));
}

}  // namespace zl::cpu
