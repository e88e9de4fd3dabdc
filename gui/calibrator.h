// Calibrates this machine in a thread of its own, as `zerolab calibrate` does.
// Ownership: owns the thread; the destructor cancels before the next measurement and waits.
// Threads: GUI thread; signals arrive there.
#pragma once

#include <QObject>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "scenarios/machine/calibrate.h"

namespace zl::gui {

class Calibrator : public QObject {
  Q_OBJECT

 public:
  explicit Calibrator(QObject* parent = nullptr) : QObject(parent) {}
  ~Calibrator() override;

  // In place of calibrate_machine(): for tests.
  using Measure = std::function<sim::ClusterSpec(const CalibrationOptions&)>;
  void measure_by(Measure measure) { measure_ = std::move(measure); }
  bool running() const { return running_; }
  // Nothing while one runs. Writes what is fitted to `file`.
  void start(const CalibrationOptions& options, const std::string& file);
  void cancel() { stop_ = true; }

 Q_SIGNALS:
  void progressed(const QString& what, int done, int total);
  void finished(const QString& error);  // "": calibrated

 private:
  void work(CalibrationOptions options, const std::string& file);

  std::thread thread_;
  std::atomic<bool> stop_{false};
  bool running_ = false;
  Measure measure_ = calibrate_machine;
};

}  // namespace zl::gui
