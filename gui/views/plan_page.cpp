#include "gui/views/plan_page.h"

#include <QComboBox>
#include <QCoreApplication>
#include <QEventLoop>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "gui/command_line.h"
#include "gui/models/plan_data.h"
#include "gui/models/table_model.h"
#include "gui/views/chart_page.h"
#include "gui/views/folding_row.h"
#include "gui/views/table_view.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/plan_tables.h"
#include "scenarios/planner/variation.h"

namespace zl::gui {
namespace {

constexpr std::size_t kPlansShown = 10;
constexpr int kQuestionWidth = 260;

// The scenario apart from the strategies, which a search does not ask for.
bool asks_the_same(const Document& a, const Document& b) {
  for (const std::string& path : Document::differences(a, b)) {
    if (!path.starts_with("strategies") && path != "name" && path != "comment") return false;
  }
  return true;
}

}  // namespace

PlanPage::PlanPage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), finder_(new PlanFinder(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  QWidget* question = make_question();
  layout->addWidget(new FoldingRow(question, kQuestionWidth, make_answer()));
  setFocusProxy(batch_);
  follow_finder();
  connect(&session, &Session::study_changed, this, &PlanPage::compare_scenarios);
  connect(&session, &Session::failed, this, &PlanPage::show_buttons);
  connect(&session, &Session::document_changed, this, &PlanPage::show_buttons);
  compare_scenarios();
}

QWidget* PlanPage::make_question() {
  batch_ = new QLineEdit;
  batch_->setAccessibleName(tr("Sequences a step"));
  batch_->setToolTip(tr("Of all ranks together; empty: as many as the scenario's first strategy"));
  goal_ = new QComboBox;
  goal_->addItems({"throughput", "memory"});
  goal_->setAccessibleName(tr("Goal"));
  limits_ = new QLineEdit;
  limits_->setAccessibleName(tr("Limits"));
  limits_->setPlaceholderText("tensor<=8,zero=1");
  limits_->setToolTip(
      tr("What to leave out: tensor, pipeline, virtual_stages, data, shard, replicate, zero, "
         "micro_batch with =, <= or >=; schedule, recompute, offload, sequence_parallel with ="));
  start_ = new QPushButton(tr("Find &plans"));
  state_ = new QLabel;
  state_->setWordWrap(true);
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* question = new QWidget;
  auto* form = new QFormLayout;
  form->addRow(tr("Sequences a s&tep"), batch_);
  form->addRow(tr("&Goal"), goal_);
  form->addRow(tr("&Limits"), limits_);
  auto* column = new QVBoxLayout(question);
  column->setContentsMargins(0, 0, 8, 0);
  column->addLayout(form);
  column->addWidget(start_);
  column->addWidget(state_);
  column->addStretch(1);
  connect(start_, &QPushButton::clicked, this, &PlanPage::start);
  for (QLineEdit* line : {batch_, limits_}) {
    connect(line, &QLineEdit::returnPressed, this, &PlanPage::start);
    connect(line, &QLineEdit::textChanged, this, &PlanPage::compare_questions);
  }
  connect(goal_, &QComboBox::currentTextChanged, this, &PlanPage::compare_questions);
  return question;
}

QWidget* PlanPage::make_answer() {
  plot_ = new ScatterPlot(tr("Plans by throughput and memory"));
  plot_->set_empty_text(tr("The plans appear here while they are found."));
  table_ = new TableModel(this);
  view_ = make_table_view(table_, tr("Plans"), this);
  add_ = new QPushButton(tr("&Add to the scenario"));
  add_->setToolTip(
      tr("Enter or double click in the table; every page shows it then, undo takes it "
         "back"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(make_exports(), 1);
  bar->addWidget(add_);
  auto* below = new QWidget;
  auto* column = new QVBoxLayout(below);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(view_, 1);
  column->addLayout(bar);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(new ChartPage(plot_));
  splitter->addWidget(below);
  splitter->setStretchFactor(0, 1);
  splitter->setStretchFactor(1, 1);
  on_row_taken(view_, add_, [this](int row) { add(row); });
  on_row_reached(view_, [this](int row) {
    plot_->set_highlighted(row < 0 ? std::vector<int>{} : std::vector{row});
    show_buttons();
  });
  connect(plot_, &ScatterPlot::activated, this, [this](int row) { set_current_row(*view_, row); });
  return splitter;
}

void PlanPage::follow_finder() {
  connect(finder_, &PlanFinder::progressed, this, [this](const QString& what, int percent) {
    show_state(tr("%1 % %2").arg(percent).arg(what));
  });
  connect(finder_, &PlanFinder::found, this, &PlanPage::take);
  connect(finder_, &PlanFinder::failed, this, [this](const QString& message) {
    show_state(message);
    show_buttons();
  });
}

QString PlanPage::state() const { return state_->text(); }

void PlanPage::show_state(const QString& text) { state_->setText(text); }

// Of the first strategy of the scenario; 0: there is none.
std::int64_t PlanPage::scenario_batch() const {
  const auto study = session_.study();
  if (!study || study->strategies.empty()) return 0;
  return tokens_per_step(study->scenario, study->strategies.front().imported.strategy) /
         study->scenario.run.sequence_length;
}

// 0: no number.
std::int64_t PlanPage::typed_batch() const {
  const QString typed = batch_->text().trimmed();
  return typed.isEmpty() ? scenario_batch() : typed.toLongLong();
}

QString PlanPage::limits_text() const { return limits_->text().remove(' '); }

QStringList PlanPage::fields() const {
  return {QString::number(typed_batch()), goal_->currentText(), limits_text()};
}

PlanRequest PlanPage::request() const {
  PlanRequest request;
  request.global_batch = typed_batch();
  if (request.global_batch < 1) {
    throw Error(ErrorCode::usage, "Sequences a step: \"" + batch_->text().trimmed().toStdString() +
                                      "\" is no whole number from 1; write 1024");
  }
  request.scenario = plan_scenario(session_.document());
  request.goal = plan_goal(goal_->currentText().toStdString());
  request.limits = parse_limits(limits_text().toStdString());
  request.top = kPlansShown;
  return request;
}

void PlanPage::start() {
  const bool was_running = finder_->running();
  finder_->cancel();
  if (was_running) {
    show_state(tr("Stopped."));
    return show_buttons();
  }
  try {
    PlanRequest asked = request();
    asked_ = session_.document();
    asked_fields_ = fields();
    command_ = QString::fromStdString(
        plan_command_line(asked_, asked.global_batch, asked.goal, limits_text().toStdString()));
    plans_.reset();
    added_.clear();
    plot_->set_data({});
    table_->set_table({});
    compare_questions();
    show_state(tr("Searching…"));
    request_ = asked;
    finder_->start(std::move(asked));
  } catch (const Error& error) {
    show_state(error.what());
  }
  show_buttons();
}

void PlanPage::wait() {
  while (finder_->running()) {
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents |
                                    QEventLoop::ExcludeUserInputEvents);
  }
}

void PlanPage::take(std::shared_ptr<const Plans> plans, bool is_all) {
  plans_ = std::move(plans);
  std::vector<Plan> listed;
  for (const Plan* plan : shown_plans(*plans_)) listed.push_back(*plan);
  plot_->set_data(plan_points(*plans_));
  table_->set_table(listed.empty() ? Table() : plan_table(listed, {}));
  if (is_all) {
    show_state(plans_->best.empty() ? QString::fromStdString("No plan fits: " + plans_->shortage)
                                    : QString::fromStdString(counts_line(*plans_)));
    view_->selectRow(0);
  }
  show_buttons();
}

// Plans of a scenario that has changed since are none of the one that is shown.
void PlanPage::compare_scenarios() {
  batch_->setPlaceholderText(QString::number(scenario_batch()));
  if (!added_.empty() && session_.study()->find(added_) == nullptr) {  // undone
    added_.clear();
    show_state(QString::fromStdString(counts_line(*plans_)));
  }
  const bool is_other = plans_ && !asks_the_same(asked_, session_.document());
  if (is_other) {
    finder_->cancel();
    show_state(tr("The scenario has changed since: find its plans."));
  }
  compare_questions();
  show_buttons();
}

bool PlanPage::dimmed() const {
  return plans_ && (asked_fields_ != fields() || !asks_the_same(asked_, session_.document()));
}

// What was found stays, dimmed, until its question is asked again or another is answered.
void PlanPage::compare_questions() {
  const bool was_dimmed = std::exchange(is_dimmed_, dimmed());
  if (was_dimmed == is_dimmed_) return;  // a palette costs a restyling
  plot_->set_stale(is_dimmed_);
  QPalette colors;  // those of the window
  if (is_dimmed_) {
    colors = palette();
    colors.setColor(QPalette::Text, colors.color(QPalette::Disabled, QPalette::Text));
  }
  view_->setPalette(colors);
}

void PlanPage::show_buttons() {
  const bool has_row = plans_ && view_->currentIndex().isValid();
  start_->setText(finder_->running() ? tr("Sto&p") : tr("Find &plans"));
  start_->setEnabled(finder_->running() || session_.error().isEmpty());
  copy_->setEnabled(plans_ != nullptr);
  report_->setEnabled(has_plans());
  launch_->setEnabled(selected() != nullptr);
  add_->setEnabled(has_row && asks_the_same(asked_, session_.document()));
}

void PlanPage::add(int row) {
  const auto study = session_.study();
  if (!plans_ || !study || row < 0 || !add_->isEnabled()) return;
  const auto shown = shown_plans(*plans_);
  if (row >= static_cast<int>(shown.size())) return;
  const Strategy& strategy = shown[static_cast<std::size_t>(row)]->strategy.strategy;
  const Variation variation{strategy.name, strategy_to_json(strategy).dump(), {}};
  const StrategyStudy* same = same_strategy(*study, variation);
  if (same != nullptr) {
    const QString twin = QString::fromStdString(same->name());
    show_state(tr("That is %1, which is in the scenario already.").arg(twin));
    return session_.select({twin});
  }
  const Variation added = with_free_name(*study, variation);
  const QString name = QString::fromStdString(added.name);
  std::vector<std::string> strategies = listed_strategies(*study);
  strategies.push_back(added.json);
  session_.edit(study->document.with_strategies(strategies), tr("Add %1").arg(name));
  session_.select({name});
  added_ = added.name;
  show_state(tr("%1 is in the scenario now: see Timeline, Memory, A and B.").arg(name));
}

}  // namespace zl::gui
