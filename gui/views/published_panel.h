// Published runs of other software beside what is predicted of them: `zerolab validate`.
// Ownership: owns its models and the thread that predicts. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <memory>
#include <span>
#include <vector>

#include "gui/background.h"
#include "scenarios/published/validate.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace zl::gui {

class TableModel;

class PublishedPanel : public QWidget {
  Q_OBJECT

 public:
  explicit PublishedPanel(QWidget* parent = nullptr);

  QString state() const;
  QComboBox* quantity() const { return quantity_; }
  const TableModel& accuracy() const { return *accuracy_; }
  const TableModel& runs() const { return *runs_; }
  // Predicts the runs of the catalogue; again: stops.
  void start();
  void start(std::vector<PublishedRun> runs);
  bool running() const { return background_->running(); }

 private:
  struct Validation {
    std::vector<PublishedRun> runs;    // which the others refer to
    std::vector<Judged> times, bytes;  // bytes of a device at its peak
  };
  std::vector<Judged> judge_times(std::span<const PublishedRun> runs, const Background::Link& link);
  void show_found();
  void show_button();

  Background* background_;
  QPushButton* button_;
  QComboBox* quantity_;
  QLabel* state_;
  TableModel *accuracy_, *runs_;
  std::shared_ptr<const Validation> found_;
};

}  // namespace zl::gui
