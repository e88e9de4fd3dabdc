#include "gui/evaluation_worker.h"

#include <exception>
#include <utility>

namespace zl::gui {

EvaluationWorker::EvaluationWorker(Deliver deliver) : deliver_(std::move(deliver)) {
  thread_ = std::thread([this] { work(); });
}

EvaluationWorker::~EvaluationWorker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    cancelled_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void EvaluationWorker::request(std::uint64_t ticket, Document document) {
  {
    const std::lock_guard lock(mutex_);
    pending_ = Request{ticket, std::move(document)};
    cancelled_ = true;
  }
  changed_.notify_one();
}

void EvaluationWorker::work() {
  Evaluator evaluator;
  for (;;) {
    Request request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || pending_.has_value(); });
      if (ending_) return;
      request = *std::exchange(pending_, std::nullopt);
      cancelled_ = false;
    }
    std::shared_ptr<const Study> study;
    std::string error;
    try {
      study = evaluator.evaluate(request.document, cancelled_);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    if (study || !error.empty()) deliver_(request.ticket, std::move(study), std::move(error));
  }
}

}  // namespace zl::gui
