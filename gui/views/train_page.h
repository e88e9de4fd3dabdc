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
class QSettings;

namespace zl::gui {

class LinePlot;
class PromptBox;
class TableModel;
class TrainFiles;

class TrainPage : public QWidget {
  Q_OBJECT

 public:
  TrainPage(Session& session, const std::filesystem::path& database, QWidget* parent = nullptr);

  RunController& controller() { return *controller_; }
  void set_database(const std::filesystem::path& database) { database_ = database; }
  LinePlot* losses() const { return losses_; }
  TableModel* progress() const { return table_; }
  QComboBox* backend() const { return backend_; }
  // The selected strategies that are shown, else all that are shown; nothing while the scenario is
  // not what its form says.
  void start();
  // Another scenario; what the form says of checkpoints and models is not of it.
  void start(const Scenario& scenario, const std::vector<std::string>& strategies,
             const std::string& backend, const KeptFiles& files = {});
  void cancel();
  QString state() const;  // the line over the chart
  TrainFiles* files() const { return files_; }
  // The folders of its form, from one session of the program to the next.
  void store(QSettings& settings) const;
  void restore(const QSettings& settings);
  PromptBox* prompt_box() const { return prompt_box_; }

 private:
  QHBoxLayout* make_bar();
  QWidget* make_lower_tabs();
  std::vector<std::string> chosen() const;
  static QString hint();
  void follow_session();
  void name_start();
  void begin(const QStringList& strategies, qint64 steps);
  void begin_strategy(int index);
  void take_step(const RunProgress& step);
  void take_evaluation(int index, const EvaluationPoint& point);
  void end_strategy(int index, const RunResult& result);
  void end(const QString& message);
  void show_progress();

  Session& session_;
  std::filesystem::path database_;
  RunController* controller_;
  QComboBox* backend_ = nullptr;
  QPushButton* start_ = nullptr;
  QPushButton* cancel_ = nullptr;
  QLabel* state_ = nullptr;
  bool refused_ = false;  // state_ says what is wrong with the scenario
  QComboBox* curve_ = nullptr;
  TrainFiles* files_ = nullptr;
  PromptBox* prompt_box_ = nullptr;
  LinePlot* losses_ = nullptr;
  TableModel* table_ = nullptr;
  TrainingProgress progress_;
  std::string saved_models_;  // folder of the run under way
};

}  // namespace zl::gui
