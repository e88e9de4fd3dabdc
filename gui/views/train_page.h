// Starts real runs of the selected strategies and shows them while they train.
// Ownership: owns the run controller; refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <filesystem>

#include "gui/run_controller.h"
#include "gui/session.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QPushButton;

namespace zl::gui {

class LinePlot;
class TableModel;

class TrainPage : public QWidget {
  Q_OBJECT

 public:
  TrainPage(Session& session, const std::filesystem::path& database, QWidget* parent = nullptr);

  RunController& controller() { return *controller_; }
  void set_database(const std::filesystem::path& database) { database_ = database; }
  LinePlot* losses() const { return losses_; }
  TableModel* progress() const { return progress_; }
  QComboBox* backend() const { return backend_; }
  // The strategies that the session shows.
  void start();
  void start(const Scenario& scenario, const std::vector<std::string>& strategies,
             const std::string& backend);
  void cancel();

 private:
  struct Row {
    QString strategy;
    std::vector<double> step, loss;
    RunProgress last;
    QString state;
  };
  QHBoxLayout* make_bar();
  void begin(const QStringList& strategies, qint64 steps);
  void take_step(const RunProgress& progress);
  void end_strategy(int index, const RunResult& result);
  void end(const QString& message);
  void show_rows();

  Session& session_;
  std::filesystem::path database_;
  RunController* controller_;
  QComboBox* backend_ = nullptr;
  QPushButton* start_ = nullptr;
  QPushButton* cancel_ = nullptr;
  QLabel* state_ = nullptr;
  LinePlot* losses_ = nullptr;
  TableModel* progress_ = nullptr;
  std::vector<Row> rows_;
  qint64 steps_ = 0;
};

}  // namespace zl::gui
