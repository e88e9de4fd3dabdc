// Finds plans in a thread of its own, one request after the other.
// Ownership: owns the thread; the destructor cancels and waits for it. Threads: GUI thread; signals
// arrive there.
#pragma once

#include <QObject>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "scenarios/planner/plan.h"

namespace zl::gui {

class PlanFinder : public QObject {
  Q_OBJECT

 public:
  explicit PlanFinder(QObject* parent = nullptr);
  ~PlanFinder() override;

  // Drops a search under way.
  void start(PlanRequest request);
  void cancel();
  bool running() const { return running_; }

 Q_SIGNALS:
  void progressed(const QString& what, int percent);
  // What is best so far; `is_all`: the search is over.
  void found(const std::shared_ptr<const zl::Plans>& plans, bool is_all);
  void failed(const QString& message);

 private:
  void work();
  void search(const PlanRequest& request, int ticket);
  // Calls `emit` in the GUI thread while the ticket's search is the one that counts.
  template <class Emit>
  void post(int ticket, Emit emit);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<PlanRequest> pending_;
  bool ending_ = false;
  int ticket_ = 0;  // of the search whose results count
  bool running_ = false;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

}  // namespace zl::gui
