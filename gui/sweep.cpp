#include "gui/sweep.h"

#include <chrono>

namespace zl::gui {

using Clock = std::chrono::steady_clock;
constexpr auto kBetweenSignals = std::chrono::milliseconds(100);

Sweep::~Sweep() { cancel(); }

void Sweep::cancel() {
  stop_ = true;
  ++ticket_;
  running_ = false;
  if (thread_.joinable()) thread_.join();
}

void Sweep::start(std::shared_ptr<const Study> study, const std::string& strategy) {
  cancel();
  stop_ = false;
  running_ = true;
  thread_ = std::thread([this, study = std::move(study), strategy, ticket = ticket_] {
    if (const StrategyStudy* found = study->find(strategy)) work(*study, *found, ticket);
  });
}

void Sweep::work(const Study& study, const StrategyStudy& strategy, int ticket) {
  const std::vector<Variation> all = sweep_variations(study, strategy);
  const int count = static_cast<int>(all.size()) + 1;
  std::vector<SweepRow> rows;
  const auto send = [&] {
    QMetaObject::invokeMethod(
        this,
        [this, rows = std::move(rows), ticket, count] {
          if (ticket == ticket_) Q_EMIT found(rows, count);
        },
        Qt::QueuedConnection);
    rows.clear();
  };
  auto sent = Clock::now();
  sweep(study, strategy, all, stop_, [&](SweepRow row) {
    rows.push_back(std::move(row));
    if (Clock::now() - sent < kBetweenSignals) return;
    send();
    sent = Clock::now();
  });
  if (stop_) return;
  send();
  QMetaObject::invokeMethod(
      this,
      [this, ticket] {
        if (ticket != ticket_) return;
        running_ = false;
        Q_EMIT finished();
      },
      Qt::QueuedConnection);
}

}  // namespace zl::gui
