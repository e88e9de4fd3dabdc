// The strategy table with selection, baseline and copying.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/session.h"
#include "results/format.h"

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

 private:
  void selection_from_table();
  void selection_to_table();
  Table selected_rows() const;

  Session& session_;
  StrategyModel* model_;
  QTableView* view_;
  bool updating_ = false;
};

}  // namespace zl::gui
