// Starts real runs of the selected strategies and shows them while they train.
// Ownership: owns the run controller; refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <filesystem>
#include <optional>

#include "gui/run_controller.h"
#include "gui/session.h"
#include "results/format.h"

class QCheckBox;
class QComboBox;
class QHBoxLayout;
class QLineEdit;
class QLabel;
class QPushButton;
class QVBoxLayout;

namespace zl::gui {

class LinePlot;
class PromptBox;
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
  // The selected strategies that are shown, else all that are shown; nothing while the scenario is
  // not what its form says.
  void start();
  void start(const Scenario& scenario, const std::vector<std::string>& strategies,
             const std::string& backend);
  void cancel();
  QString state() const;  // the line over the chart
  // What the scenario trains: the folder of a model with its weights, and files of text.
  void use_model(const QString& folder);
  void use_data(const QString& file);
  void use_validation(const QString& file);
  // Where real runs leave their models, which the prompt box then tries; empty: nowhere.
  void set_saved_models(const QString& folder);
  PromptBox* prompt_box() const { return prompt_box_; }
  // Where real runs keep checkpoints; empty: nowhere.
  void set_checkpoint(const QString& folder, std::int64_t every, bool resume);

 private:
  enum class Shown : std::uint8_t { loss, grad_norm, learning_rate };
  struct Row {
    QString strategy;
    std::vector<double> step, loss = {}, grad_norm = {}, learning_rate = {};
    RunProgress last = {};
    QString state = {};
    std::optional<RunResult> result = {};
    std::vector<EvaluationPoint> evaluations = {};
  };
  QHBoxLayout* make_bar();
  QHBoxLayout* make_checkpoint_bar();
  QVBoxLayout* make_material_bars();
  QWidget* make_lower_tabs();
  void take_evaluation(int index, const EvaluationPoint& point);
  std::vector<std::string> chosen() const;
  void name_start();
  void begin_strategy(int index);
  void begin(const QStringList& strategies, qint64 steps);
  void take_step(const RunProgress& progress);
  void end_strategy(int index, const RunResult& result);
  void end(const QString& message);
  QString verdict() const;
  Table progress_table() const;
  void show_rows();

  Session& session_;
  std::filesystem::path database_;
  RunController* controller_;
  QComboBox* backend_ = nullptr;
  QPushButton* start_ = nullptr;
  QPushButton* cancel_ = nullptr;
  QLabel* state_ = nullptr;
  QComboBox* curve_ = nullptr;
  QLineEdit* folder_ = nullptr;
  QLineEdit* models_ = nullptr;
  PromptBox* prompt_box_ = nullptr;
  QLineEdit* every_ = nullptr;
  QCheckBox* resume_ = nullptr;
  LinePlot* losses_ = nullptr;
  TableModel* progress_ = nullptr;
  std::vector<Row> rows_;
  qint64 steps_ = 0;
};

}  // namespace zl::gui
