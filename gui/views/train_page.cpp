#include "gui/views/train_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/table_model.h"
#include "gui/plot/line_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/prompt_box.h"
#include "gui/views/table_view.h"
#include "gui/views/train_files.h"

namespace zl::gui {

TrainPage::TrainPage(Session& session, const std::filesystem::path& database, QWidget* parent)
    : QWidget(parent),
      session_(session),
      database_(database),
      controller_(new RunController(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(make_bar());
  files_ = new TrainFiles(session);
  layout->addWidget(files_);
  state_ = new QLabel(hint());
  state_->setWordWrap(true);
  layout->addWidget(state_);
  losses_ = new LinePlot(tr("Training"));
  losses_->set_empty_text(tr("The curve of each strategy appears here while it trains."));
  auto* chart = new ChartPage(losses_);
  curve_ = new QComboBox;
  curve_->addItems({tr("loss"), tr("gradient norm"), tr("learning rate")});
  curve_->setAccessibleName(tr("What the curves show"));
  chart->add_control(curve_);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(chart);
  splitter->addWidget(make_lower_tabs());
  splitter->setSizes({300, 200});
  layout->addWidget(splitter, 1);
  connect(curve_, &QComboBox::currentIndexChanged, this, &TrainPage::show_progress);
  connect(controller_, &RunController::started, this, &TrainPage::begin);
  connect(controller_, &RunController::strategy_started, this, &TrainPage::begin_strategy);
  connect(controller_, &RunController::progressed, this, &TrainPage::take_step);
  connect(controller_, &RunController::evaluated, this, &TrainPage::take_evaluation);
  connect(controller_, &RunController::strategy_finished, this, &TrainPage::end_strategy);
  connect(controller_, &RunController::finished, this, &TrainPage::end);
  for (const auto signal :
       {&Session::study_changed, &Session::filter_changed, &Session::selection_changed}) {
    connect(&session, signal, this, &TrainPage::follow_session);
  }
}

QHBoxLayout* TrainPage::make_bar() {
  backend_ = new QComboBox;
  backend_->addItems(RunController::backends());
  backend_->setAccessibleName(tr("Backend of the run"));
  start_ = new QPushButton(tr("&Start"));
  connect(start_, &QPushButton::clicked, this, [this] { start(); });
  cancel_ = new QPushButton(tr("&Cancel"));
  cancel_->setEnabled(false);
  cancel_->setToolTip(tr("Ends after the step under way; the steps so far are kept"));
  connect(cancel_, &QPushButton::clicked, this, &TrainPage::cancel);
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Backend")));
  bar->addWidget(backend_);
  bar->addWidget(start_);
  bar->addWidget(cancel_);
  bar->addStretch(1);
  return bar;
}

QWidget* TrainPage::make_lower_tabs() {
  table_ = new TableModel(this);
  prompt_box_ = new PromptBox;
  auto* tabs = new QTabWidget;
  tabs->addTab(make_table_view(table_, tr("Progress of the runs"), this), tr("Progress"));
  tabs->addTab(prompt_box_, tr("Try the model"));
  return tabs;
}

QString TrainPage::hint() {
  return tr(
      "Runs the scenario for real, on this machine, and stores each result. "
      "Without a selection: all strategies that are ticked.");
}

QString TrainPage::state() const { return state_->text(); }

void TrainPage::begin_strategy(int index) {
  progress_.begin_strategy(index, controller_->is_real() ? tr("set-up") : tr("simulating"));
  show_progress();
}

void TrainPage::take_step(const RunProgress& step) {
  progress_.take_step(step);
  state_->setText(tr("%1: step %2 of %3")
                      .arg(progress_.strategy(step.index))
                      .arg(step.step)
                      .arg(progress_.steps()));
  show_progress();
}

void TrainPage::take_evaluation(int index, const EvaluationPoint& point) {
  progress_.take_evaluation(index, point);
  show_progress();
}

void TrainPage::end_strategy(int index, const RunResult& result) {
  progress_.end_strategy(index, result);
  if (result.outcome == Outcome::ok && !result.predicted && !saved_models_.empty()) {
    prompt_box_->set_model(QString::fromStdString(RunController::saved_to(
        saved_models_, progress_.strategy(index).toStdString(), progress_.count() == 1)));
  }
  show_progress();
}

void TrainPage::end(const QString& message) {
  start_->setEnabled(true);
  cancel_->setEnabled(false);
  progress_.end();
  show_progress();
  const QString verdict = progress_.verdict(!database_.empty());
  state_->setText(message.isEmpty() ? verdict : tr("%1: %2").arg(message, verdict));
}

std::vector<std::string> TrainPage::chosen() const {
  std::vector<std::string> selected, all;
  for (const StrategyStudy* each : session_.shown()) {
    all.push_back(each->name());
    if (session_.selection().contains(QString::fromStdString(each->name()))) {
      selected.push_back(each->name());
    }
  }
  return selected.empty() ? all : selected;
}

void TrainPage::follow_session() {
  name_start();
  if (!refused_ || !session_.error().isEmpty()) return;
  refused_ = false;
  state_->setText(hint());
}

void TrainPage::name_start() {
  const std::vector<std::string> names = chosen();
  const bool one = names.size() == 1;
  start_->setText(one ? tr("&Start %1").arg(QString::fromStdString(names.front()))
                      : tr("&Start %1 strategies").arg(names.size()));
}

void TrainPage::start() {
  const auto study = session_.study();
  if (!session_.error().isEmpty()) {
    refused_ = true;
    return state_->setText(tr("Not started, the scenario is wrong: %1").arg(session_.error()));
  }
  if (!study || session_.evaluating()) return;
  start(study->scenario, chosen(), backend_->currentText().toStdString(), files_->kept());
}

void TrainPage::start(const Scenario& scenario, const std::vector<std::string>& strategies,
                      const std::string& backend, const KeptFiles& files) {
  if (controller_->running()) return state_->setText(tr("A run is under way: cancel it first."));
  backend_->setCurrentText(QString::fromStdString(backend));
  saved_models_ = files.models;
  controller_->start(scenario, strategies, backend, database_, files);
}

void TrainPage::cancel() {
  if (!controller_->running()) return;
  controller_->cancel();
  state_->setText(tr("Ending after this step…"));
}

void TrainPage::begin(const QStringList& strategies, qint64 steps) {
  progress_.begin(strategies, steps);
  refused_ = false;
  start_->setEnabled(false);
  cancel_->setEnabled(true);
  const QString what =
      strategies.size() == 1 ? strategies.front() : tr("%1 strategies").arg(strategies.size());
  state_->setText(controller_->is_real() ? tr("Training %1: %2 steps").arg(what).arg(steps)
                                         : tr("Simulating %1").arg(what));
  show_progress();
}

void TrainPage::store(QSettings& settings) const {
  const KeptFiles files = files_->kept();
  settings.setValue("models", QString::fromStdString(files.models));
  settings.setValue("checkpoints", QString::fromStdString(files.checkpoint.folder));
  settings.setValue("checkpoint_every", static_cast<qlonglong>(files.checkpoint.every));
  settings.setValue("resume", files.checkpoint.resume);
  settings.setValue("prompted", prompt_box_->model()->text());
}

void TrainPage::restore(const QSettings& settings) {
  files_->set_models(settings.value("models").toString());
  files_->set_checkpoint(settings.value("checkpoints").toString(),
                         settings.value("checkpoint_every").toLongLong(),
                         settings.value("resume").toBool());
  prompt_box_->set_model(settings.value("prompted").toString());
}

void TrainPage::show_progress() {
  LineData chart = progress_.curves(static_cast<TrainingCurve>(curve_->currentIndex()));
  chart.y_name = curve_->currentText();
  losses_->set_data(std::move(chart));
  table_->set_table(progress_.table());
}

}  // namespace zl::gui
