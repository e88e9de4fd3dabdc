// Published runs of other software beside what is predicted of them: `zerolab validate`. What was
// predicted is in the database of runs.
// Ownership: owns its models and the thread that predicts; refers to the database's model. Threads:
// GUI thread.
#pragma once

#include <QWidget>
#include <memory>
#include <span>
#include <vector>

#include "gui/background.h"
#include "scenarios/report/published_section.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace zl::gui {

class RunModel;
class TableModel;

class PublishedPanel : public QWidget {
  Q_OBJECT

 public:
  explicit PublishedPanel(const RunModel& runs, QWidget* parent = nullptr);

  QString state() const;
  QComboBox* quantity() const { return quantity_; }
  const TableModel& accuracy() const { return *accuracy_; }
  const TableModel& runs() const { return *runs_; }
  // Predicts the runs of the catalogue; again: stops.
  void start();
  void start(std::vector<PublishedRun> runs);
  bool running() const { return background_->running(); }
  // What the database holds.
  void load();

 private:
  std::vector<Judged> judge_times(std::span<const PublishedRun> runs, const Background::Link& link);
  void showEvent(QShowEvent* event) override;
  void keep();
  void show_found();
  void show_button();

  const RunModel& database_;
  Background* background_;
  QPushButton* button_;
  QComboBox* quantity_;
  QLabel* state_;
  TableModel *accuracy_, *runs_;
  std::shared_ptr<const StoredValidation> found_;
};

}  // namespace zl::gui
