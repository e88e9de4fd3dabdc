// Simulated beside measured: every scenario of the database that has both, with its errors; and
// published runs of other software.
// Ownership: refers to the model of the database. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/models/run_model.h"

class QLabel;

namespace zl::gui {

class PublishedPanel;
class ScatterPlot;
class TableModel;

class AccuracyPage : public QWidget {
  Q_OBJECT

 public:
  explicit AccuracyPage(RunModel& runs, QWidget* parent = nullptr);
  TableModel* table() const { return table_; }
  PublishedPanel& published() const { return *published_; }

 private:
  void refill();

  RunModel& runs_;
  QLabel* summary_;
  ScatterPlot* plot_;
  TableModel* table_;
  PublishedPanel* published_;
};

}  // namespace zl::gui
