#include "gui/views/train_page.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "gui/models/meaning.h"
#include "gui/models/table_model.h"
#include "gui/plot/line_plot.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
#include "gui/views/prompt_box.h"

namespace zl::gui {

TrainPage::TrainPage(Session& session, const std::filesystem::path& database, QWidget* parent)
    : QWidget(parent),
      session_(session),
      database_(database),
      controller_(new RunController(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(make_bar());
  layout->addLayout(make_material_bars());
  layout->addLayout(make_checkpoint_bar());
  state_ =
      new QLabel(tr("Runs the scenario for real, on this machine, and stores each result. "
                    "Without a selection: all strategies that are ticked."));
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
  connect(curve_, &QComboBox::currentIndexChanged, this, &TrainPage::show_rows);
  connect(controller_, &RunController::started, this, &TrainPage::begin);
  connect(controller_, &RunController::strategy_started, this, &TrainPage::begin_strategy);
  connect(controller_, &RunController::progressed, this, &TrainPage::take_step);
  connect(controller_, &RunController::evaluated, this, &TrainPage::take_evaluation);
  connect(controller_, &RunController::strategy_finished, this, &TrainPage::end_strategy);
  connect(controller_, &RunController::finished, this, &TrainPage::end);
  for (const auto signal :
       {&Session::study_changed, &Session::filter_changed, &Session::selection_changed}) {
    connect(&session, signal, this, &TrainPage::name_start);
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
  progress_ = new TableModel(this);
  prompt_box_ = new PromptBox;
  auto* tabs = new QTabWidget;
  tabs->addTab(make_table_view(progress_, tr("Progress of the runs"), this), tr("Progress"));
  tabs->addTab(prompt_box_, tr("Try the model"));
  return tabs;
}

// What to train on, and below it where to: one row of it all is wider than a small window.
QVBoxLayout* TrainPage::make_material_bars() {
  auto* bar = new QHBoxLayout;
  const auto add = [&](const QString& text, const QString& hint, auto choose) {
    auto* button = new QPushButton(text);
    button->setToolTip(hint);
    connect(button, &QPushButton::clicked, this, choose);
    bar->addWidget(button);
  };
  add(tr("&Model folder…"), tr("A Hugging Face model to start from: weights and tokenizer"),
      [this] { use_model(QFileDialog::getExistingDirectory(this, tr("Folder of a model"))); });
  add(tr("&Data…"), tr("A text, or a .bin of tokens, to train on"),
      [this] { use_data(QFileDialog::getOpenFileName(this, tr("What to train on"))); });
  add(tr("&Validation data…"), tr("A text that is not trained on, to judge the model by"),
      [this] { use_validation(QFileDialog::getOpenFileName(this, tr("What to judge by"))); });
  models_ = new QLineEdit;
  models_->setPlaceholderText(tr("no folder: trained models are not kept"));
  models_->setAccessibleName(tr("Folder for trained models"));
  models_->setToolTip(
      tr("Gets the trained model as transformers loads it: the best one by the validation data, "
         "else the last; of several strategies each has a folder in it"));
  auto* browse = new QPushButton(tr("Fo&lder…"));
  connect(browse, &QPushButton::clicked, this, [this] {
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder for trained models"));
    if (!folder.isEmpty()) set_saved_models(folder);
  });
  bar->addStretch(1);
  auto* kept = new QHBoxLayout;
  kept->addWidget(new QLabel(tr("Save to")));
  kept->addWidget(models_, 1);
  kept->addWidget(browse);
  auto* bars = new QVBoxLayout;
  bars->addLayout(bar);
  bars->addLayout(kept);
  return bars;
}

void TrainPage::use_model(const QString& folder) {
  if (!folder.isEmpty()) session_.edit_key("model", folder);
}

void TrainPage::use_data(const QString& file) {
  if (!file.isEmpty()) session_.edit_key("run.data", file);
}

void TrainPage::use_validation(const QString& file) {
  if (!file.isEmpty()) session_.edit_key("run.eval_data", file);
}

void TrainPage::set_saved_models(const QString& folder) { models_->setText(folder); }

QHBoxLayout* TrainPage::make_checkpoint_bar() {
  folder_ = new QLineEdit;
  folder_->setPlaceholderText(tr("no folder: no checkpoints"));
  folder_->setAccessibleName(tr("Folder of the checkpoints"));
  folder_->setToolTip(
      tr("Gets a folder per strategy: weights and optimizer state, to resume from"));
  auto* browse = new QPushButton(tr("&Folder…"));
  connect(browse, &QPushButton::clicked, this, [this] {
    const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder of the checkpoints"));
    if (!folder.isEmpty()) folder_->setText(folder);
  });
  every_ = new QLineEdit;
  every_->setPlaceholderText(tr("the end"));
  every_->setAccessibleName(tr("Steps between checkpoints"));
  every_->setToolTip(tr("Steps between checkpoints; empty: only after the last one"));
  every_->setMaximumWidth(every_->fontMetrics().horizontalAdvance("0000000000"));
  resume_ = new QCheckBox(tr("res&ume"));
  resume_->setToolTip(tr("Goes on from the newest checkpoint, where there is one"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Checkpoints")));
  bar->addWidget(folder_, 1);
  bar->addWidget(browse);
  bar->addWidget(new QLabel(tr("every")));
  bar->addWidget(every_);
  bar->addWidget(resume_);
  return bar;
}

void TrainPage::set_checkpoint(const QString& folder, std::int64_t every, bool resume) {
  folder_->setText(folder);
  every_->setText(every > 0 ? QString::number(every) : QString());
  resume_->setChecked(resume);
}

QString TrainPage::state() const { return state_->text(); }

void TrainPage::begin_strategy(int index) {
  rows_[index].state = controller_->is_real() ? tr("set-up") : tr("simulating");
  show_rows();
}

void TrainPage::take_step(const RunProgress& progress) {
  Row& row = rows_[progress.index];
  row.last = progress;
  row.step.push_back(static_cast<double>(progress.step));
  row.loss.push_back(progress.loss);
  row.grad_norm.push_back(progress.grad_norm);
  row.learning_rate.push_back(progress.learning_rate);
  row.state = tr("running");
  state_->setText(tr("%1: step %2 of %3").arg(row.strategy).arg(progress.step).arg(steps_));
  show_rows();
}

void TrainPage::take_evaluation(int index, const EvaluationPoint& point) {
  rows_[index].evaluations.push_back(point);
  show_rows();
}

void TrainPage::end_strategy(int index, const RunResult& result) {
  Row& row = rows_[index];
  const QString models = models_->text().trimmed();
  if (result.outcome == Outcome::ok && !result.predicted && !models.isEmpty()) {
    prompt_box_->set_model(QString::fromStdString(RunController::saved_to(
        models.toStdString(), row.strategy.toStdString(), rows_.size() == 1)));
  }
  row.result = result;
  row.state = result.outcome == Outcome::ok ? (result.predicted ? tr("simulated") : tr("trained"))
                                            : QString(name_of(result.outcome)) + ": " +
                                                  QString::fromStdString(result.message);
  if (result.outcome == Outcome::interrupted) row.state = QString::fromStdString(result.message);
  if (result.run_id != 0) row.state += tr(", stored as run %1").arg(result.run_id);
  show_rows();
}

// "5 of 5 trained; stored", "9 of 9 failed: 9 out_of_memory; nothing is stored".
QString TrainPage::verdict() const {
  int stored = 0, good = 0, failed = 0;
  std::map<QString, int> others;
  for (const Row& row : rows_) {
    if (row.result && row.result->run_id != 0) ++stored;
    if (row.result && row.result->outcome == Outcome::ok) {
      ++good;
    } else {
      ++others[row.result ? QString(name_of(row.result->outcome)) : tr("not started")];
      failed += row.result && row.result->outcome != Outcome::interrupted ? 1 : 0;
    }
  }
  const auto all = static_cast<int>(rows_.size());
  QStringList parts;
  for (const auto& [what, count] : others) parts << tr("%1 %2").arg(count).arg(what);
  QString text = good == all     ? tr("%1 of %1 done").arg(all)
                 : failed == all ? tr("%1 of %1 failed: %2").arg(all).arg(parts.join(", "))
                                 : tr("%1 of %2 done, %3").arg(good).arg(all).arg(parts.join(", "));
  if (database_.empty()) return text + ".";
  return text + (stored > 0 ? tr("; %1 stored, see the Runs page.").arg(stored)
                            : tr("; nothing is stored."));
}

void TrainPage::end(const QString& message) {
  start_->setEnabled(true);
  cancel_->setEnabled(false);
  for (Row& row : rows_) {
    if (!row.result) row.state = tr("not started");
  }
  show_rows();
  state_->setText(message.isEmpty() ? verdict() : tr("%1: %2").arg(message, verdict()));
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

void TrainPage::name_start() {
  const std::vector<std::string> names = chosen();
  const bool one = names.size() == 1;
  start_->setText(one ? tr("&Start %1").arg(QString::fromStdString(names.front()))
                      : tr("&Start %1 strategies").arg(names.size()));
}

void TrainPage::start() {
  const auto study = session_.study();
  if (!session_.error().isEmpty()) {
    return state_->setText(tr("Not started, the scenario is wrong: %1").arg(session_.error()));
  }
  if (!study || session_.evaluating()) return;
  start(study->scenario, chosen(), backend_->currentText().toStdString());
}

void TrainPage::start(const Scenario& scenario, const std::vector<std::string>& strategies,
                      const std::string& backend) {
  if (controller_->running()) return state_->setText(tr("A run is under way: cancel it first."));
  backend_->setCurrentText(QString::fromStdString(backend));
  KeptFiles files;
  files.models = models_->text().trimmed().toStdString();
  files.checkpoint.folder = folder_->text().trimmed().toStdString();
  files.checkpoint.every = every_->text().toLongLong();
  files.checkpoint.resume = resume_->isChecked();
  controller_->start(scenario, strategies, backend, database_, files);
}

void TrainPage::cancel() {
  if (!controller_->running()) return;
  controller_->cancel();
  state_->setText(tr("Ending after this step…"));
}

void TrainPage::begin(const QStringList& strategies, qint64 steps) {
  rows_.clear();
  steps_ = steps;
  for (const QString& name : strategies) {
    rows_.push_back({name, {}});
    rows_.back().state = tr("waiting");
  }
  start_->setEnabled(false);
  cancel_->setEnabled(true);
  state_->setText(controller_->is_real()
                      ? tr("Training %1 strategies for %2 steps each").arg(rows_.size()).arg(steps)
                      : tr("Simulating %1 strategies").arg(rows_.size()));
  show_rows();
}

// Of what runs what it has measured so far, of what ended its result.
Table TrainPage::progress_table() const {
  Table table;
  table.columns = {{"strategy", Align::left},
                   {"step", Align::right},
                   {"of", Align::right},
                   {"loss", Align::right},
                   {"validation loss", Align::right},
                   {"perplexity", Align::right},
                   {"step time", Align::right, Unit::seconds},
                   {"left", Align::right, Unit::seconds},
                   {"tokens/s", Align::right},
                   {"peak device", Align::right, Unit::bytes},
                   {"state", Align::left}};
  for (const Row& row : rows_) {
    const bool ended = row.result && row.result->outcome == Outcome::ok;
    const bool begun = row.last.step > 0;
    const EvaluationPoint* best = best_of(row.evaluations);
    const auto number = [](bool known, double value) { return known ? Cell(value) : Cell(); };
    const double step_time = ended ? row.result->step_time.median : row.last.step_time;
    const double tokens = ended ? row.result->tokens_per_second : row.last.tokens_per_second;
    const double peak =
        static_cast<double>(ended ? row.result->peak_device.total() : row.last.peak_device);
    const std::int64_t step = ended ? row.result->first_step + row.result->steps : row.last.step;
    table.rows.push_back(
        {row.strategy.toStdString(), step, std::int64_t{steps_}, number(begun, row.last.loss),
         number(best != nullptr, best == nullptr ? 0 : best->loss),
         number(best != nullptr, best == nullptr ? 0 : best->perplexity()),
         number(ended || begun, step_time),
         number(begun && !row.result, step_time * static_cast<double>(steps_ - step)),
         number(ended || begun, tokens), number(ended || begun, peak), row.state.toStdString()});
  }
  return table;
}

void TrainPage::show_rows() {
  const auto what = static_cast<Shown>(curve_->currentIndex());
  LineData chart;
  chart.x_name = tr("step");
  chart.y_name = curve_->currentText();
  chart.from_zero = false;
  for (const Row& row : rows_) {
    const auto& y = what == Shown::loss        ? row.loss
                    : what == Shown::grad_norm ? row.grad_norm
                                               : row.learning_rate;
    chart.curves.push_back({row.strategy, row.step, y, style_of_strategy(row.strategy)});
    if (what != Shown::loss || row.evaluations.empty()) continue;
    Curve& judged =
        chart.curves.emplace_back(Curve{tr("%1, validation").arg(row.strategy), {}, {}});
    for (const EvaluationPoint& point : row.evaluations) {
      judged.x.push_back(static_cast<double>(point.step));
      judged.y.push_back(point.loss);
    }
  }
  losses_->set_data(std::move(chart));
  progress_->set_table(progress_table());
}

}  // namespace zl::gui
