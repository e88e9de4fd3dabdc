// A thread that evaluates the latest requested document; a new request cancels the one under way.
// Ownership: owns its thread; the destructor cancels and joins. Threads: request() from any;
// `deliver` is called on the worker's thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "scenarios/planner/evaluator.h"

namespace zl::gui {

class EvaluationWorker {
 public:
  // Either a study, or null and the reason. Cancelled requests deliver nothing.
  using Deliver =
      std::function<void(std::uint64_t ticket, std::shared_ptr<const Study>, std::string error)>;

  explicit EvaluationWorker(Deliver deliver);
  ~EvaluationWorker();
  void request(std::uint64_t ticket, Document document);

 private:
  struct Request {
    std::uint64_t ticket = 0;
    Document document;
  };
  void work();

  Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Request> pending_;
  bool ending_ = false;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

}  // namespace zl::gui
