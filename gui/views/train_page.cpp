#include "gui/views/train_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/table_model.h"
#include "gui/plot/line_plot.h"
#include "gui/views/chart_page.h"

namespace zl::gui {

TrainPage::TrainPage(Session& session, const std::filesystem::path& database, QWidget* parent)
    : QWidget(parent),
      session_(session),
      database_(database),
      controller_(new RunController(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(make_bar());
  state_ =
      new QLabel(tr("Runs the scenario for real, on this machine, and stores each result. "
                    "Without a selection: all its strategies."));
  state_->setWordWrap(true);
  layout->addWidget(state_);
  losses_ = new LinePlot(tr("Loss"));
  losses_->set_empty_text(tr("The loss of each strategy appears here while it trains."));
  progress_ = new TableModel(this);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(new ChartPage(losses_));
  splitter->addWidget(make_table_view(progress_, tr("Progress of the runs"), this));
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 1);
  layout->addWidget(splitter, 1);
  connect(controller_, &RunController::started, this, &TrainPage::begin);
  connect(controller_, &RunController::progressed, this, &TrainPage::take_step);
  connect(controller_, &RunController::strategy_finished, this, &TrainPage::end_strategy);
  connect(controller_, &RunController::finished, this, &TrainPage::end);
}

QHBoxLayout* TrainPage::make_bar() {
  backend_ = new QComboBox;
  backend_->addItems(RunController::backends());
  backend_->setAccessibleName(tr("Backend of the run"));
  start_ = new QPushButton(tr("Start the selected &strategies"));
  connect(start_, &QPushButton::clicked, this, [this] { start(); });
  cancel_ = new QPushButton(tr("&Cancel"));
  cancel_->setEnabled(false);
  cancel_->setToolTip(tr("Ends after the step under way; what was cut short is not stored"));
  connect(cancel_, &QPushButton::clicked, this, &TrainPage::cancel);
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Backend")));
  bar->addWidget(backend_);
  bar->addWidget(start_);
  bar->addWidget(cancel_);
  bar->addStretch(1);
  return bar;
}

void TrainPage::take_step(const RunProgress& progress) {
  Row& row = rows_[progress.index];
  row.last = progress;
  row.step.push_back(static_cast<double>(progress.step));
  row.loss.push_back(progress.loss);
  row.state = tr("running");
  show_rows();
}

void TrainPage::end_strategy(int index, const RunResult& result) {
  Row& row = rows_[index];
  if (result.outcome == Outcome::ok) {
    row.state = result.run_id ? tr("stored as run %1").arg(result.run_id) : tr("ok");
  } else {
    row.state = QString(name_of(result.outcome)) + ": " + QString::fromStdString(result.message);
  }
  show_rows();
}

void TrainPage::end(const QString& message) {
  start_->setEnabled(true);
  cancel_->setEnabled(false);
  state_->setText(message.isEmpty() ? tr("Finished; the runs are in the Runs page.") : message);
}

void TrainPage::start() {
  const auto study = session_.study();
  if (!study) return;
  std::vector<std::string> names;
  for (const StrategyStudy* each : session_.shown()) names.push_back(each->name());
  start(study->scenario, names, backend_->currentText().toStdString());
}

void TrainPage::start(const Scenario& scenario, const std::vector<std::string>& strategies,
                      const std::string& backend) {
  if (controller_->running()) return state_->setText(tr("A run is under way: cancel it first."));
  controller_->start(scenario, strategies, backend, database_);
}

void TrainPage::cancel() {
  controller_->cancel();
  state_->setText(tr("Ending after this step…"));
}

void TrainPage::begin(const QStringList& strategies, qint64 steps) {
  rows_.clear();
  steps_ = steps;
  for (const QString& name : strategies) rows_.push_back({name, {}, {}, {}, tr("waiting")});
  start_->setEnabled(false);
  cancel_->setEnabled(true);
  state_->setText(tr("Training %1 strategies for %2 steps each").arg(rows_.size()).arg(steps));
  show_rows();
}

void TrainPage::show_rows() {
  LineData chart;
  chart.x_name = tr("step");
  chart.y_name = tr("loss");
  chart.from_zero = false;
  Table table;
  table.columns = {{"strategy", Align::left},
                   {"step", Align::right},
                   {"of", Align::right},
                   {"loss", Align::right},
                   {"step time", Align::right, Unit::seconds},
                   {"tokens/s", Align::right},
                   {"peak device", Align::right, Unit::bytes},
                   {"state", Align::left}};
  for (const Row& row : rows_) {
    chart.curves.push_back({row.strategy, row.step, row.loss});
    const bool begun = row.last.step > 0;
    const auto number = [begun](double value) { return begun ? Cell(value) : Cell(); };
    table.rows.push_back(
        {row.strategy.toStdString(), row.last.step, std::int64_t{steps_}, number(row.last.loss),
         number(row.last.step_time), number(row.last.tokens_per_second),
         number(static_cast<double>(row.last.peak_device)), row.state.toStdString()});
  }
  losses_->set_data(std::move(chart));
  progress_->set_table(std::move(table));
}

}  // namespace zl::gui
