// Runs strategies for real in a thread of its own, one after the other, and stores each result.
// Ownership: owns the thread; the destructor cancels and waits for the step under way. Threads: GUI
// thread; signals arrive there.
#pragma once

#include <QObject>
#include <QString>
#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/train/run_result.h"
#include "gui/models/training_progress.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/skipped_steps.h"

namespace zl::gui {

// What real runs leave besides rows of the database.
struct KeptFiles {
  CheckpointConfig checkpoint = {};
  std::string models;  // folder for trained models; empty: they are not kept
};

class RunController : public QObject {
  Q_OBJECT

 public:
  explicit RunController(QObject* parent = nullptr);
  ~RunController() override;

  bool running() const { return running_; }
  bool is_real() const { return real_; }  // of the newest batch: steps are taken
  // Backends that this build knows, "sim" last.
  static QStringList backends();

  // Nothing while a batch runs. `database` empty: results are not stored. Simulated runs take no
  // steps that could be shown: of them only the result comes. `files`: of real runs.
  void start(const Scenario& scenario, const std::vector<std::string>& strategies,
             const std::string& backend, const std::filesystem::path& database,
             const KeptFiles& files = {});
  // Where the model of a strategy is saved: of several each has a folder in that one.
  static std::string saved_to(const std::string& folder, const std::string& strategy, bool alone);
  void cancel();  // after the step under way

 Q_SIGNALS:
  void started(const QStringList& strategies, qint64 steps);
  void progressed(const zl::gui::RunProgress& progress);
  void evaluated(int index, const zl::EvaluationPoint& point);
  void strategy_started(int index);
  void strategy_finished(int index, const zl::RunResult& result);
  // "" or why the batch ended early.
  void finished(const QString& message);

 private:
  struct Batch {
    Scenario scenario;
    std::string backend;
    std::filesystem::path database;
    KeptFiles files;
  };
  void work(const Batch& batch);
  void run_all(const Batch& batch);
  RunHooks hooks_of(const Batch& batch, int index, std::vector<double>& step_seconds);
  template <class Call>
  void post(Call call);

  std::thread thread_;
  SkippedSteps skipped_;  // of all batches; the thread's while there is one
  std::atomic<bool> stop_{false};
  bool running_ = false, real_ = true;
};

}  // namespace zl::gui
