// Where the time and the bytes of a strategy go and what would change it most: `zerolab explain`.
// Ownership: owns its models and the thread that works it out. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/background.h"
#include "gui/session.h"

class QLabel;

namespace zl {
struct Explanation;
}

namespace zl::gui {

class TableModel;

class ExplainPage : public QWidget {
  Q_OBJECT

 public:
  explicit ExplainPage(Session& session, QWidget* parent = nullptr);

  QString summary() const;
  const TableModel& parts() const { return *parts_; }
  const TableModel& step() const { return *step_; }
  const TableModel& peak() const { return *peak_; }
  const TableModel& levers() const { return *levers_; }
  bool running() const { return background_->running(); }
  // Runs the event loop until the answer is there: for screenshots.
  void wait();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QWidget* make_tables();
  void ask();
  void show_message(const QString& message);
  void take(const Explanation& why);

  Session& session_;
  Background* background_;
  QLabel* summary_;
  TableModel *parts_, *step_, *peak_, *software_, *levers_;
  QWidget* software_box_;
  std::shared_ptr<const Study> asked_;
  QString asked_of_;  // the strategy
};

}  // namespace zl::gui
