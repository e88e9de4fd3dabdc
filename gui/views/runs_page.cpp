#include "gui/views/runs_page.h"

#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/error.h"
#include "gui/models/run_charts.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/parallel_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/folding_row.h"
#include "gui/views/table_view.h"
#include "scenarios/files/load_scenario.h"

namespace zl::gui {

constexpr int kRefreshMilliseconds = 1000;

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
    filter_rows(*view_, text);
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
  connect(parallel_, &ParallelPlot::brushed, this, &RunsPage::select_lines);
  connect(model_, &RunModel::failed, this, &RunsPage::show_message);
  connect(model_, &RunModel::modelAboutToBeReset, this, [this] { chosen_ = selected(); });
  connect(view_->model(), &QAbstractItemModel::modelReset, this, &RunsPage::select_chosen);
  connect(model_, &RunModel::runs_changed, this, [this] {
    show_message({});
    show_parallel();
    show_losses();
    Q_EMIT database_changed();
  });
}

// A run that joins or leaves keeps the others selected.
void RunsPage::select_chosen() {
  std::vector<int> rows;
  for (int row = 0; row < model_->rowCount(); ++row) {
    if (std::ranges::find(chosen_, model_->run(row).id) != chosen_.end()) rows.push_back(row);
  }
  select_rows(*view_, rows);
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
  for (const int row : selected_rows(*view_)) ids.push_back(model_->run(row).id);
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
  for (const int row : selected_rows(*view_)) {
    const auto found = std::ranges::find(lined_, row);
    if (found != lined_.end()) lines.push_back(static_cast<int>(found - lined_.begin()));
  }
  parallel_->set_highlighted(lines);
  std::vector<NamedResult> shown;
  for (const std::int64_t id : selected_or_newest()) {
    const RunResult* result = loaded(id);
    if (result != nullptr && !result->loss.empty()) shown.push_back({id, result});
    if (shown.size() == kMostLossCurves) break;  // a thousand runs may be selected
  }
  losses_->set_data(loss_curves(model_->live(), shown));
}

void RunsPage::show_parallel() {
  lined_ = listed_rows(*view_);
  std::vector<const RunSummary*> runs;
  runs.reserve(lined_.size());
  for (const int row : lined_) runs.push_back(&model_->run(row));
  parallel_->set_data(runs_side_by_side(runs));
}

void RunsPage::select_lines(const std::vector<int>& lines) {
  std::vector<int> rows;
  rows.reserve(lines.size());
  for (const int line : lines) rows.push_back(lined_[static_cast<std::size_t>(line)]);
  select_rows(*view_, rows);
}

void RunsPage::open_scenario() {
  const std::vector<int> rows = selected_rows(*view_);
  if (rows.empty()) return show_message(tr("Select the run whose scenario to open."));
  const RunSummary& run = model_->run(rows.front());
  try {
    session_.open(Document::parse(model_->scenario_json(run.scenario_hash), run.scenario_name));
  } catch (const Error& error) {
    show_message(error.what());
  }
}

void RunsPage::train_again() {
  const std::vector<int> rows = selected_rows(*view_);
  if (rows.size() != 1) return show_message(tr("Select the one run to train again."));
  const RunSummary& run = model_->run(rows.front());
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
