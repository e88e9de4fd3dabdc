// The sweep of one strategy as parallel coordinates and a table: brush what you want, apply one.
// Ownership: owns the sweep; refers to the session. Threads: GUI thread.
#pragma once

#include <QElapsedTimer>
#include <QWidget>

#include "gui/session.h"
#include "gui/sweep.h"

class QComboBox;
class QLabel;
class QTableView;

namespace zl::gui {

class ParallelPlot;
class TableModel;

class ExplorePage : public QWidget {
  Q_OBJECT

 public:
  explicit ExplorePage(Session& session, QWidget* parent = nullptr);

  ParallelPlot* plot() const { return plot_; }
  TableModel* table() const { return table_; }
  // Starts when the page is first shown, and again after each edit of the scenario.
  void start();
  // Runs the event loop until the sweep is over: for tests and screenshots.
  void wait();
  // Adds the combination of a row of the table to the scenario.
  void add(int row);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void list_strategies();
  void take(const std::vector<SweepRow>& rows, int of);
  void show_rows();
  void show_table(const std::vector<int>& kept);

  Session& session_;
  Sweep* sweep_;
  std::shared_ptr<const Study> asked_;
  std::string swept_;  // the scenario of the rows: the varied strategy alone
  std::vector<SweepRow> rows_;
  QElapsedTimer tabled_;     // since the table was made
  std::vector<int> listed_;  // index into rows_ of each row of the table
  QComboBox* strategy_;
  QLabel* state_;
  ParallelPlot* plot_;
  TableModel* table_;
  QTableView* view_;
};

}  // namespace zl::gui
