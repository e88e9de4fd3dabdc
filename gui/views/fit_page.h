// "Make it fit": the smallest changes that make a strategy fit, each with its price, one click to
// apply.
// Ownership: owns a hidden session that evaluates the candidates. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/session.h"
#include "scenarios/planner/fit.h"

class QComboBox;
class QLabel;
class QTableView;

namespace zl::gui {

class TableModel;

class FitPage : public QWidget {
  Q_OBJECT

 public:
  explicit FitPage(Session& session, QWidget* parent = nullptr);

  TableModel* table() const { return table_; }
  // Applies the advice of a row of the table.
  void apply(int row);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void refill();
  void show_advice();
  const StrategyStudy* strategy() const;

  Session& session_;
  Session* evaluation_;
  std::shared_ptr<const Study> asked_;  // the study the candidates belong to
  std::vector<Variation> candidates_;
  std::vector<FitAdvice> advice_;
  QComboBox* strategy_;
  QLabel* state_;
  TableModel* table_;
  QTableView* view_;
};

}  // namespace zl::gui
