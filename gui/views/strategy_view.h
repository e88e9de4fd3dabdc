// The strategy table with selection, baseline and copying.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/session.h"
#include "results/format.h"

class QLabel;
class QTableView;

namespace zl::gui {

class StrategyModel;

class StrategyView : public QWidget {
  Q_OBJECT

 public:
  explicit StrategyView(Session& session, QWidget* parent = nullptr);

  QTableView* table() const { return view_; }
  StrategyModel& model() const { return *model_; }
  // As a spreadsheet or a Markdown page takes it: raw values, or as shown.
  QString as_tsv() const;
  QString as_markdown() const;
  void copy_tsv() const;
  void copy_markdown() const;
  void pin_current();
  void show_all();  // ticks every strategy

 private:
  QWidget* make_filter_line();
  void show_filter();
  void sort_as_before();
  void selection_from_table();
  void selection_to_table();
  Table copied_rows() const;

  Session& session_;
  StrategyModel* model_;
  QTableView* view_;
  QWidget* filter_line_ = nullptr;  // while the charts do not show all
  QLabel* filter_text_ = nullptr;
  QString sorted_by_;  // the column's name: columns come and go
  bool updating_ = false;
};

}  // namespace zl::gui
