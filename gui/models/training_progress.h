// What the strategies of one start have reached: their curves, a table, and how it ended.
// Ownership: values. Threads: GUI thread.
#pragma once

#include <QCoreApplication>
#include <QStringList>
#include <optional>
#include <vector>

#include "core/train/run_result.h"
#include "gui/plot/line_plot.h"

namespace zl::gui {

// A step that was taken.
struct RunProgress {
  int index = 0;  // of the strategy in the batch
  std::int64_t step = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double step_time = 0, tokens_per_second = 0;  // median so far, seconds; its rate
  std::int64_t peak_device = 0;                 // bytes of rank 0
};

enum class TrainingCurve : std::uint8_t { loss, grad_norm, learning_rate };

class TrainingProgress {
  Q_DECLARE_TR_FUNCTIONS(TrainingProgress)

 public:
  void begin(const QStringList& strategies, std::int64_t steps);
  void begin_strategy(int index, const QString& state);
  void take_step(const RunProgress& progress);
  void take_evaluation(int index, const EvaluationPoint& point);
  void end_strategy(int index, const RunResult& result);
  void end();

  std::size_t count() const { return rows_.size(); }
  std::int64_t steps() const { return steps_; }
  const QString& strategy(int index) const { return rows_[index].strategy; }
  LineData curves(TrainingCurve what) const;
  // Of what runs what it has measured so far, of what ended its result.
  Table table() const;
  // "5 of 5 done; 5 stored, see the Runs page.", "9 of 9 failed: 9 out_of_memory; nothing is
  // stored."; without a word of storing where that was not asked for.
  QString verdict(bool stores) const;

 private:
  struct Row {
    QString strategy;
    std::vector<double> step = {}, loss = {}, grad_norm = {}, learning_rate = {};
    RunProgress last = {};
    QString state = {};
    std::optional<RunResult> result = {};
    std::vector<EvaluationPoint> evaluations = {};
  };
  std::vector<Cell> cells_of(const Row& row) const;

  std::vector<Row> rows_;
  std::int64_t steps_ = 0;
};

}  // namespace zl::gui
