#include "gui/views/runs_page.h"

#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/parallel_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/folding_row.h"
#include "scenarios/files/load_scenario.h"

namespace zl::gui {

constexpr int kRefreshMilliseconds = 1000;

// The x axis of `count` steps that follow the first `before` ones of a training.
static std::vector<double> step_numbers(std::int64_t before, std::size_t count) {
  std::vector<double> steps(count);
  std::iota(steps.begin(), steps.end(), static_cast<double>(before + 1));
  return steps;
}

RunsPage::RunsPage(Session& session, const std::filesystem::path& database, QWidget* parent)
    : QWidget(parent), session_(session), model_(new RunModel(this)) {
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(make_list());
  splitter->addWidget(make_charts());
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);
  follow_model();
  open(database);
  timer_ = new QTimer(this);
  connect(timer_, &QTimer::timeout, model_, &RunModel::refresh);
  timer_->start(kRefreshMilliseconds);
}

// The table under its filter and buttons.
QWidget* RunsPage::make_list() {
  view_ = make_table_view(model_, tr("Runs"), this);
  filter_ = static_cast<QSortFilterProxyModel*>(view_->model());
  filter_->setFilterKeyColumn(-1);
  filter_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  message_ = new QLabel;
  message_->setWordWrap(true);
  auto* list = new QWidget;
  auto* layout = new QVBoxLayout(list);
  layout->setContentsMargins(4, 4, 4, 0);
  layout->addLayout(make_bar());
  layout->addWidget(message_);
  layout->addWidget(view_, 1);
  return list;
}

QHBoxLayout* RunsPage::make_bar() {
  auto* filter = new QLineEdit;
  filter->setPlaceholderText(tr("Filter by scenario, strategy, backend, outcome, tag or note"));
  filter->setAccessibleName(tr("Filter the runs"));
  filter->setClearButtonEnabled(true);
  connect(filter, &QLineEdit::textChanged, this, [this](const QString& text) {
    filter_->setFilterFixedString(text);
    show_parallel();
  });
  auto* open_button = new QPushButton(tr("&Open its scenario"));
  connect(open_button, &QPushButton::clicked, this, &RunsPage::open_scenario);
  auto* again_button = new QPushButton(tr("Run a&gain"));
  again_button->setToolTip(tr("The selected run's scenario and strategy, on its backend"));
  connect(again_button, &QPushButton::clicked, this, &RunsPage::train_again);
  auto* compare_button = new QPushButton(tr("Compare &two"));
  compare_button->setToolTip(tr("The two selected runs on the Compare page"));
  connect(compare_button, &QPushButton::clicked, this, &RunsPage::compare_selected);
  auto* delete_button = new QPushButton(tr("&Delete…"));
  delete_button->setToolTip(tr("The selected runs leave the database for good"));
  connect(delete_button, &QPushButton::clicked, this, &RunsPage::delete_selected);
  auto* bar = new QHBoxLayout;
  bar->addWidget(filter, 1);
  for (QWidget* button : {open_button, again_button, compare_button, delete_button}) {
    bar->addWidget(button);
  }
  return bar;
}

// In a narrow window the charts scroll, the table and its buttons stay.
QWidget* RunsPage::make_charts() {
  losses_ = new LinePlot(tr("Loss of the selected runs"));
  losses_->set_empty_text(tr("Select real runs to see their loss; simulated runs have none."));
  parallel_ = new ParallelPlot(tr("The runs side by side"));
  parallel_->set_empty_text(tr("Every listed run is a line here."));
  parallel_->setToolTip(tr("Drag along an axis to select the runs in a range"));
  auto* charts = new FoldingSplitter;
  charts->addWidget(new ChartPage(losses_));
  charts->addWidget(new ChartPage(parallel_));
  charts->setStretchFactor(0, 2);
  charts->setStretchFactor(1, 3);
  auto* area = new QScrollArea;
  area->setWidget(charts);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  return area;
}

void RunsPage::follow_model() {
  connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &RunsPage::show_losses);
  connect(parallel_, &ParallelPlot::brushed, this, &RunsPage::select);
  connect(model_, &RunModel::failed, this, &RunsPage::show_message);
  connect(model_, &RunModel::runs_changed, this, [this] {
    show_message({});
    show_losses();
    show_parallel();
    Q_EMIT database_changed();
  });
}

void RunsPage::compare_selected() {
  const auto ids = selected();
  if (ids.size() != 2) return show_message(tr("Select exactly two runs to compare them."));
  Q_EMIT compare(ids[0], ids[1]);
}

void RunsPage::delete_selected() {
  const auto ids = selected();
  if (ids.empty()) return show_message(tr("Select the runs to delete."));
  QStringList names;
  for (const std::int64_t id : ids) names << QString::number(id);
  const auto answer = QMessageBox::question(
      this, tr("Delete runs"), tr("Delete run %1 for good?").arg(names.join(", ")),
      QMessageBox::Yes | QMessageBox::Cancel, QMessageBox::Cancel);
  if (answer != QMessageBox::Yes || !model_->remove(ids)) return;
  for (const std::int64_t id : ids) cache_.erase(id);
}

void RunsPage::open(const std::filesystem::path& database) {
  cache_.clear();
  model_->open(database);
  if (model_->error().isEmpty()) show_message({});
}

void RunsPage::show_message(const QString& message) {
  QString text = message;
  if (text.isEmpty() && model_->rowCount() == 0) {
    text = tr("No runs in %1 yet: start one on the Train page, or with `zerolab run`.")
               .arg(QString::fromStdString(model_->path().string()));
  }
  message_->setText(text);
  message_->setVisible(!text.isEmpty());
}

std::vector<std::int64_t> RunsPage::selected() const {
  std::vector<std::int64_t> ids;
  for (const QModelIndex& index : view_->selectionModel()->selectedRows()) {
    ids.push_back(model_->run(filter_->mapToSource(index).row()).id);
  }
  return ids;
}

const RunResult* RunsPage::loaded(std::int64_t id) {
  const auto found = cache_.find(id);
  if (found != cache_.end()) return &found->second;
  try {
    return &(cache_[id] = model_->load(id));
  } catch (const Error& error) {
    cache_.erase(id);
    show_message(error.what());
    return nullptr;
  }
}

// Without a selection: the newest real runs.
std::vector<std::int64_t> RunsPage::selected_or_newest() const {
  constexpr std::size_t kNewest = 4;
  std::vector<std::int64_t> ids = selected();
  if (!ids.empty()) return ids;
  for (int row = 0; row < model_->rowCount() && ids.size() < kNewest; ++row) {
    const RunSummary& run = model_->run(row);
    if (!run.predicted && run.outcome == Outcome::ok) ids.push_back(run.id);
  }
  return ids;
}

void RunsPage::show_losses() {
  std::vector<int> lines;
  for (const QModelIndex& index : view_->selectionModel()->selectedRows()) {
    lines.push_back(index.row());
  }
  parallel_->set_highlighted(lines);
  LineData chart;
  chart.x_name = tr("step");
  chart.y_name = tr("loss");
  chart.from_zero = false;
  for (const LiveRun& run : model_->live()) {
    Curve curve{tr("running: %1, step %2 of %3")
                    .arg(QString::fromStdString(run.strategy))
                    .arg(run.first_step + static_cast<std::int64_t>(run.loss.size()))
                    .arg(run.steps),
                {},
                run.loss};
    curve.x = step_numbers(run.first_step, run.loss.size());
    chart.curves.push_back(std::move(curve));
  }
  constexpr std::size_t kCurves = 12;  // more cannot be told apart
  for (const std::int64_t id : selected_or_newest()) {
    if (chart.curves.size() == kCurves) break;
    const RunResult* result = loaded(id);
    if (result == nullptr || result->loss.empty()) continue;
    chart.curves.push_back({tr("%1: %2").arg(id).arg(QString::fromStdString(result->strategy)),
                            step_numbers(result->first_step, result->loss.size()), result->loss});
    if (result->evaluations.empty()) continue;
    Curve& judged = chart.curves.emplace_back(Curve{
        tr("%1: %2, validation").arg(id).arg(QString::fromStdString(result->strategy)), {}, {}});
    for (const EvaluationPoint& point : result->evaluations) {
      judged.x.push_back(static_cast<double>(point.step));
      judged.y.push_back(point.loss);
    }
  }
  losses_->set_data(std::move(chart));
}

// One line per listed run, in the order of the table's model.
void RunsPage::show_parallel() {
  const auto text = [](const std::string& value) { return QString::fromStdString(value); };
  std::set<QString> strategies, backends;
  for (int row = 0; row < filter_->rowCount(); ++row) {
    const RunSummary& run = model_->run(filter_->mapToSource(filter_->index(row, 0)).row());
    strategies.insert(text(run.strategy));
    backends.insert(text(run.backend));
  }
  const auto place = [](const std::set<QString>& names, const QString& name) {
    return static_cast<double>(std::distance(names.begin(), names.find(name)));
  };
  const auto positive = [](double value) { return value > 0 ? value : NAN; };
  ParallelData chart;
  chart.axes = {{tr("backend"), Unit::none, {backends.begin(), backends.end()}},
                {tr("ranks")},
                {tr("strategy"), Unit::none, {strategies.begin(), strategies.end()}},
                {tr("memory"), Unit::bytes},
                {tr("wire/step"), Unit::bytes},
                {tr("step time"), Unit::seconds},
                {tr("tokens/s")}};
  for (int row = 0; row < filter_->rowCount(); ++row) {
    const RunSummary& run = model_->run(filter_->mapToSource(filter_->index(row, 0)).row());
    chart.lines.push_back(
        {tr("run %1: %2, %3").arg(run.id).arg(text(run.scenario_name), text(run.strategy)),
         {place(backends, text(run.backend)), static_cast<double>(run.ranks),
          place(strategies, text(run.strategy)),
          positive(static_cast<double>(run.peak_device_bytes)),
          run.peak_device_bytes > 0 ? static_cast<double>(run.wire_bytes_per_step) : NAN,
          positive(run.step_time_median), positive(run.tokens_per_second)},
         run.outcome == Outcome::ok});
  }
  add_training_axes(chart);
  parallel_->set_data(std::move(chart));
}

// What `zerolab tune` varies and what it judges by, where a listed run has it.
void RunsPage::add_training_axes(ParallelData& chart) const {
  const auto add = [&](const QString& name, auto&& value_of) {
    std::vector<double> values;
    for (int row = 0; row < filter_->rowCount(); ++row) {
      values.push_back(value_of(model_->run(filter_->mapToSource(filter_->index(row, 0)).row())));
    }
    if (std::none_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
      return;
    }
    chart.axes.push_back({name});
    for (std::size_t i = 0; i < values.size(); ++i) chart.lines[i].values.push_back(values[i]);
  };
  const auto is_judged = [](const RunSummary& run) {
    return std::isfinite(run.best_validation_loss);
  };
  add(tr("tokens/step"), [&](const RunSummary& run) {
    return is_judged(run) ? static_cast<double>(run.tokens_per_step()) : NAN;
  });
  add(tr("learning rate"), [](const RunSummary& run) { return run.learning_rate; });
  add(tr("validation loss"), [](const RunSummary& run) { return run.best_validation_loss; });
}

void RunsPage::select(const std::vector<int>& rows) {
  QItemSelection selection;
  for (const int row : rows) {
    const QModelIndex index = filter_->index(row, 0);
    selection.select(index, index);
  }
  view_->selectionModel()->select(selection,
                                  QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

void RunsPage::open_scenario() {
  const auto rows = view_->selectionModel()->selectedRows();
  if (rows.isEmpty()) return show_message(tr("Select the run whose scenario to open."));
  const RunSummary& run = model_->run(filter_->mapToSource(rows.first()).row());
  try {
    session_.open(Document::parse(model_->scenario_json(run.scenario_hash), run.scenario_name));
  } catch (const Error& error) {
    show_message(error.what());
  }
}

void RunsPage::train_again() {
  const auto rows = view_->selectionModel()->selectedRows();
  if (rows.size() != 1) return show_message(tr("Select the one run to train again."));
  const RunSummary& run = model_->run(filter_->mapToSource(rows.first()).row());
  try {
    const Scenario scenario =
        scenario_from_json(model_->scenario_json(run.scenario_hash), run.scenario_name);
    Q_EMIT run_again(scenario, QString::fromStdString(run.strategy),
                     QString::fromStdString(run.backend));
  } catch (const Error& error) {
    show_message(error.what());
  }
}

}  // namespace zl::gui
