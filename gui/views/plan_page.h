// "Which strategy should I run?": a batch, a goal and limits on the left; the plans that the
// search finds on the right, filled while it runs.
// Ownership: owns the search; refers to the session. Threads: GUI thread.
#pragma once

#include <QStringList>
#include <QWidget>
#include <memory>

#include "gui/plan_finder.h"
#include "gui/session.h"
#include "scenarios/launch/launch.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTableView;

namespace zl::gui {

class ScatterPlot;
class TableModel;

class PlanPage : public QWidget {
  Q_OBJECT

 public:
  explicit PlanPage(Session& session, QWidget* parent = nullptr);

  QLineEdit* batch() const { return batch_; }
  QLineEdit* limits() const { return limits_; }
  QComboBox* goal() const { return goal_; }
  TableModel* table() const { return table_; }
  ScatterPlot* plot() const { return plot_; }
  QString state() const;
  bool running() const { return finder_->running(); }
  // The plans answer another question than the one that is shown.
  bool dimmed() const;
  // Searches with what the fields say of the scenario as it is now; again: stops.
  void start();
  // Runs the event loop until the search is over: for screenshots.
  void wait();
  // Adds the plan of a row of the table to the scenario.
  void add(int row);
  // The plan of the selected row, else the best, and its runners-up as a page.
  bool has_plans() const { return plans_ && !plans_->best.empty(); }
  void save_report(const QString& file) const;
  // The plan of the selected row as the software's configuration, or why there is none.
  void copy_launch(LaunchSoftware software);
  // `zerolab plan` with the same question.
  const QString& command() const { return command_; }

 Q_SIGNALS:
  void report_wanted();

 private:
  QWidget* make_question();
  QWidget* make_answer();
  void follow_finder();
  PlanRequest request() const;
  std::int64_t typed_batch() const;
  QString limits_text() const;
  void take(std::shared_ptr<const Plans> plans, bool is_all);
  QWidget* make_exports();
  const Plan* selected() const;
  void show_state(const QString& text);
  void show_buttons();
  void compare_scenarios();
  void compare_questions();
  QStringList fields() const;
  std::int64_t scenario_batch() const;

  Session& session_;
  PlanFinder* finder_;
  std::shared_ptr<const Plans> plans_;
  Document asked_;            // the scenario of the plans
  QStringList asked_fields_;  // what the fields said
  bool is_dimmed_ = false;
  PlanRequest request_;
  QString command_;
  std::string added_;  // the plan of which the state says that it is in the scenario
  QLineEdit *batch_, *limits_;
  QComboBox* goal_;
  QPushButton *start_, *add_, *copy_, *report_, *launch_;
  QLabel* state_;
  ScatterPlot* plot_;
  TableModel* table_;
  QTableView* view_;
};

}  // namespace zl::gui
