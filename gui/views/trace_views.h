// The pages that look into a run: memory over time with what is live, and the timeline with the
// cost card of one event.
// Ownership: refer to the session. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/session.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;

namespace zl::gui {

class LinePlot;
class OpNames;
class TableModel;
class TimelinePlot;
struct TimelineData;

class MemoryTimePage : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryTimePage(Session& session, QWidget* parent = nullptr);
  LinePlot* plot() const { return plot_; }
  TableModel* live() const { return live_; }
  QString moment() const;  // the line over the live blocks
  QCheckBox* one_step() const { return one_step_; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void refill();
  void choose_selected();
  void show_live();

  Session& session_;
  LinePlot* plot_;
  QCheckBox* one_step_;
  bool stale_ = true;  // nothing is filled in while the page is hidden
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
  TableModel* totals() const { return totals_; }
  QLineEdit* search() const { return search_; }
  QComboBox* rows() const { return rows_; }  // whose operations, of a pipeline
  QString found() const;                     // "3 of 48"
  // The strategies on the axis; "" for the second: one alone.
  void show_strategies(const QString& first, const QString& second);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* make_chart();
  QWidget* make_tables();
  void follow();
  void refill();
  void list_strategies();
  void list_stages();
  // Of the pipeline, whose operations are looked at.
  int stage(const StrategyStudy& strategy) const;
  TimelineData data_of(const StrategyStudy& strategy, int source);
  void show_span(std::int32_t event, std::size_t lane);
  void show_totals();
  void show_found();
  const StrategyStudy* strategy(int source) const;

  Session& session_;
  TimelinePlot* plot_ = nullptr;
  QComboBox* strategy_ = nullptr;
  QComboBox* beside_ = nullptr;
  QComboBox* rows_ = nullptr;
  QComboBox* by_ = nullptr;
  QLineEdit* search_ = nullptr;
  QLabel* found_ = nullptr;
  QLabel* range_ = nullptr;
  TableModel* card_ = nullptr;
  TableModel* live_ = nullptr;
  TableModel* totals_ = nullptr;
  std::shared_ptr<const OpNames> names_[2];
  bool stale_ = true;  // nothing is filled in while the page is hidden
};

}  // namespace zl::gui
