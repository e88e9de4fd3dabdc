// Lists of values in a row of fields, and a table of every combination: `zerolab run` with lists.
// Ownership: owns the session that evaluates one combination after the other; refers to the
// window's. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <deque>
#include <utility>
#include <vector>

#include "core/train/run_result.h"
#include "gui/session.h"
#include "scenarios/planner/grid.h"

class QLabel;
class QLineEdit;
class QPushButton;

namespace zl::gui {

class TableModel;

class SweepPage : public QWidget {
  Q_OBJECT

 public:
  explicit SweepPage(Session& session, QWidget* parent = nullptr);

  // Whether a key of the scenario can be swept: it has a field here.
  static bool takes(const QString& key);
  QLineEdit* field(const QString& key) const;
  TableModel* table() const { return table_; }
  QString state() const;
  // Puts a list into a field and starts.
  void ask(const QString& key, const QString& values);
  // Every combination of what the fields say, of the scenario as it is now.
  void start();
  bool running() const { return !waiting_.empty(); }

 private:
  void cut(const GridAxis& axis);
  void next();
  void take(const QString& error);
  void show_results();

  Session& session_;
  Session* evaluation_;
  std::vector<std::pair<QString, QLineEdit*>> fields_;
  QPushButton* button_;
  QLabel* setup_;
  QLabel* state_;
  TableModel* table_;
  std::deque<Document> waiting_;  // the first one is being evaluated
  std::vector<RunResult> results_;
  QString first_error_;
  int asked_ = 0, refused_ = 0;
};

}  // namespace zl::gui
