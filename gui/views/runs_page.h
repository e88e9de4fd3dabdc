// The run browser: every stored run, live while other programs write, with loss curves, tags and
// notes.
// Ownership: owns the model of the database; refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <map>

#include "gui/models/run_model.h"
#include "gui/session.h"

class QHBoxLayout;
class QLabel;
class QTableView;
class QTimer;

namespace zl::gui {

class LinePlot;
class ParallelPlot;

class RunsPage : public QWidget {
  Q_OBJECT

 public:
  RunsPage(Session& session, const std::filesystem::path& database, QWidget* parent = nullptr);

  RunModel& model() { return *model_; }
  QTableView* table() const { return view_; }
  LinePlot* losses() const { return losses_; }
  ParallelPlot* parallel() const { return parallel_; }
  void open(const std::filesystem::path& database);
  // Ids of the selected rows.
  std::vector<std::int64_t> selected() const;
  void open_scenario();
  void train_again();
  void delete_selected();  // asks first

 Q_SIGNALS:
  // Two runs to put side by side.
  void compare(qint64 a, qint64 b);
  // A stored run to train once more.
  void run_again(const zl::Scenario& scenario, const QString& strategy, const QString& backend);
  void database_changed();

 private:
  QWidget* make_list();
  QHBoxLayout* make_bar();
  QWidget* make_charts();
  void follow_model();
  void select_chosen();
  void compare_selected();
  void show_message(const QString& message);
  std::vector<std::int64_t> selected_or_newest() const;
  void show_losses();
  void show_parallel();
  void select_lines(const std::vector<int>& lines);  // of the chart of all runs
  const RunResult* loaded(std::int64_t id);

  Session& session_;
  RunModel* model_;
  QTableView* view_ = nullptr;
  QLabel* message_ = nullptr;
  LinePlot* losses_ = nullptr;
  ParallelPlot* parallel_ = nullptr;
  QTimer* timer_ = nullptr;
  std::vector<std::int64_t> chosen_;         // ids, while the table is made anew
  std::vector<int> lined_;                   // the model's row of each line of that chart
  std::map<std::int64_t, RunResult> cache_;  // of what was selected
};

}  // namespace zl::gui
