// The pages that look into a run: memory over time with what is live, and the timeline with the
// cost card of one event.
// Ownership: refer to the session. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/session.h"

class QComboBox;
class QLabel;
class QLineEdit;

namespace zl::gui {

class LinePlot;
class TableModel;
class TimelinePlot;

class MemoryTimePage : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryTimePage(Session& session, QWidget* parent = nullptr);
  LinePlot* plot() const { return plot_; }
  TableModel* live() const { return live_; }

 private:
  void refill();
  void show_live();

  Session& session_;
  LinePlot* plot_;
  QComboBox* strategy_;
  QLabel* moment_;
  TableModel* live_;
  bool at_peak_ = true;  // the cursor follows the peak until it is moved
};

class TimelinePage : public QWidget {
  Q_OBJECT

 public:
  explicit TimelinePage(Session& session, QWidget* parent = nullptr);
  TimelinePlot* plot() const { return plot_; }
  TableModel* card() const { return card_; }
  TableModel* live() const { return live_; }

 private:
  void refill();
  const StrategyStudy* strategy() const;

  Session& session_;
  TimelinePlot* plot_;
  QComboBox* strategy_;
  QLineEdit* search_;
  TableModel* card_;
  TableModel* live_;
};

}  // namespace zl::gui
