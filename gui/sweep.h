// Tries every stage, recomputation, micro-batch and offload of one strategy in a thread of its own.
// Ownership: owns the thread; the destructor cancels. Threads: GUI thread; signals arrive there.
#pragma once

#include <QObject>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gui/variation.h"

namespace zl::gui {

// One combination, judged; the recordings are not kept.
struct SweepRow {
  Variation variation;
  int stage = 0;
  std::string recompute;  // as the strategy file writes it
  std::int64_t micro_batch = 1;
  std::string offload;  // "none", "optimizer", "optimizer and weights"
  bool fits = true;
  std::int64_t peak_device = 0;  // bytes of one rank
  double step_time = 0;          // seconds
  double tokens_per_second = 0;  // of all ranks
};

// Every combination that this build accepts: stages 0-3, recomputation none, auto and full, five
// micro-batches from 1 up, nothing, the optimizer or also the weights on the host.
std::vector<Variation> sweep_variations(const Study& study, const StrategyStudy& strategy);

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
  void found(const std::vector<zl::gui::SweepRow>& rows, int of);
  void finished();

 private:
  void work(const Study& study, const StrategyStudy& strategy, int ticket);

  std::thread thread_;
  std::atomic<bool> stop_{false};
  int ticket_ = 0;  // of the sweep whose results count
  bool running_ = false;
};

}  // namespace zl::gui
