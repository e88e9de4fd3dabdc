// Sweeps one strategy in a thread of its own.
// Ownership: owns the thread; the destructor cancels. Threads: GUI thread; signals arrive there.
#pragma once

#include <QObject>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "scenarios/planner/sweep.h"

namespace zl::gui {

class Sweep : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  ~Sweep() override;

  // Drops a sweep under way.
  void start(std::shared_ptr<const Study> study, const std::string& strategy);
  void cancel();
  bool running() const { return running_; }

 Q_SIGNALS:
  // The rows found since the last signal, and how many combinations there are.
  void found(const std::vector<zl::SweepRow>& rows, int of);
  void finished();

 private:
  void work(const Study& study, const StrategyStudy& strategy, int ticket);

  std::thread thread_;
  std::atomic<bool> stop_{false};
  int ticket_ = 0;  // of the sweep whose results count
  bool running_ = false;
};

}  // namespace zl::gui
