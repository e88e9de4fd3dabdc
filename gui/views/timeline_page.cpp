#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QShortcut>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/pipeline_lanes.h"
#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
#include "gui/views/folding_row.h"
#include "gui/views/table_view.h"
#include "gui/views/trace_views.h"

namespace zl::gui {

TimelinePage::TimelinePage(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(make_chart());
  splitter->addWidget(make_tables());
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);
  setFocusProxy(plot_);  // W S A D work from the first moment
  follow();
}

QWidget* TimelinePage::make_chart() {
  plot_ = new TimelinePlot(tr("Timeline"));
  plot_->setMinimumHeight(18 * fontMetrics().height());  // lanes and the memory below them
  auto* chart = new ChartPage(plot_);
  strategy_ = new QComboBox;
  strategy_->setAccessibleName(tr("Strategy of the timeline"));
  beside_ = new QComboBox;
  beside_->setAccessibleName(tr("Strategy below it"));
  beside_->setToolTip(tr("A second strategy on the same axis, both from the start of their step"));
  rows_ = new QComboBox;
  rows_->setAccessibleName(tr("Stage whose operations are shown"));
  rows_->setToolTip(tr("A pipeline's stages alone, or one of them with its operations"));
  for (QComboBox* each : {strategy_, beside_, rows_}) {
    each->setMinimumContentsLength(6);
    each->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  }
  search_ = new QLineEdit;
  search_->setPlaceholderText(tr("Search (/)"));
  search_->setAccessibleName(tr("Search an operation"));
  search_->setToolTip(
      tr("\"mlp up\", \"block 22\", \"all_gather\"; Enter: the next, Escape: back"));
  search_->setMinimumWidth(90);
  search_->setMaximumWidth(160);
  found_ = new QLabel;
  chart->add_control(search_);
  chart->add_control(found_);
  chart->add_control(strategy_);
  chart->add_control(beside_);
  chart->add_control(rows_);
  auto* keys = new QLabel(tr("W S zoom · A D pan · F focus · drag measures · 0 all"));
  keys->setForegroundRole(QPalette::PlaceholderText);
  chart->layout()->addWidget(keys);
  return chart;
}

QWidget* TimelinePage::make_tables() {
  card_ = new TableModel(this);
  live_ = new TableModel(this);
  totals_ = new TableModel(this);
  by_ = new QComboBox;
  by_->addItems({tr("by operation"), tr("by layer"), tr("by both"), tr("by phase")});
  by_->setAccessibleName(tr("What the totals are added up by"));
  range_ = new QLabel;
  range_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  range_->setWordWrap(true);
  auto* box = new QWidget;
  box->setMinimumWidth(24 * fontMetrics().averageCharWidth());
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->setSpacing(2);
  auto* head = new QHBoxLayout;
  head->addWidget(range_, 1);
  head->addWidget(by_);
  layout->addLayout(head);
  layout->addWidget(make_table_view(totals_, tr("Totals of the range"), this));
  auto* tables = new FoldingSplitter;
  tables->addWidget(box);
  tables->addWidget(
      titled(tr("Cost of the operation you click"), make_table_view(card_, tr("Cost card"), this)));
  tables->addWidget(
      titled(tr("Live at that moment"), make_table_view(live_, tr("Live blocks"), this)));
  tables->setSizes({500, 300, 300});  // names of operations are longer than what else is said
  return tables;
}

void TimelinePage::follow() {
  connect(&session_, &Session::study_changed, this, &TimelinePage::refill);
  connect(&session_, &Session::filter_changed, this, &TimelinePage::refill);
  connect(&session_, &Session::selection_changed, this, [this] {
    if (session_.selection().isEmpty()) return;
    strategy_->clear();  // the selected one is listed anew
    if (session_.selection().size() == 2) beside_->clear();
    refill();
  });
  connect(strategy_, &QComboBox::activated, this, &TimelinePage::refill);
  connect(beside_, &QComboBox::activated, this, &TimelinePage::refill);
  connect(by_, &QComboBox::currentIndexChanged, this, &TimelinePage::show_totals);
  connect(plot_, &TimelinePlot::range_changed, this, &TimelinePage::show_totals);
  connect(rows_, &QComboBox::activated, this, &TimelinePage::refill);
  connect(plot_, &TimelinePlot::span_selected, this, &TimelinePage::show_span);
  connect(plot_, &TimelinePlot::moment_selected, this, [this](double seconds) {
    if (plot_->selected()) return;  // its own strategy is shown already
    if (const StrategyStudy* one = strategy(0)) {
      live_->set_table(live_table(*one, steady_step(*one).from + seconds, stage(*one)));
    }
  });
  connect(search_, &QLineEdit::textChanged, this, &TimelinePage::show_found);
  connect(search_, &QLineEdit::returnPressed, this, [this] {
    plot_->find_next(search_->text());
    show_found();
  });
  auto* slash = new QShortcut(QKeySequence("/"), this);
  slash->setContext(Qt::WidgetWithChildrenShortcut);
  connect(slash, &QShortcut::activated, search_, [this] { search_->setFocus(); });
  auto* escape = new QShortcut(QKeySequence(Qt::Key_Escape), search_);
  escape->setContext(Qt::WidgetShortcut);
  connect(escape, &QShortcut::activated, plot_, [this] { plot_->setFocus(); });
}

void TimelinePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refill();
}

const StrategyStudy* TimelinePage::strategy(int source) const {
  const QComboBox* combo = source == 0 ? strategy_ : beside_;
  const auto study = session_.study();
  return study ? study->find(combo->currentData().toString().toStdString()) : nullptr;
}

// Keeps both choices where it can.
void TimelinePage::list_strategies() {
  const QVariant before = strategy_->currentData(), beside = beside_->currentData();
  const QSignalBlocker quiet(strategy_), quiet_too(beside_);
  strategy_->clear();
  beside_->clear();
  beside_->addItem(tr("alone"), QString());
  for (const StrategyStudy* each : session_.shown()) {
    const QString name = QString::fromStdString(each->name());
    strategy_->addItem(name, name);
    beside_->addItem(tr("beside %1").arg(name), name);
  }
  int index = before.isValid() ? strategy_->findData(before) : -1;
  const StrategyStudy* current = session_.current();
  if (index < 0 && current) index = strategy_->findData(QString::fromStdString(current->name()));
  strategy_->setCurrentIndex(std::max(0, index));
  const QVariant second =
      beside.isValid() || session_.selection().size() != 2 ? beside : session_.selection().back();
  beside_->setCurrentIndex(std::max(0, second.isValid() ? beside_->findData(second) : 0));
}

// "stages alone", then each of them with its operations; nothing to choose without a pipeline.
void TimelinePage::list_stages() {
  const int before = rows_->currentIndex();
  const QSignalBlocker quiet(rows_);
  rows_->clear();
  const StrategyStudy* first = strategy(0);
  const StrategyStudy* second = strategy(1);
  const StrategyStudy* staged = first && first->has_pipeline()     ? first
                                : second && second->has_pipeline() ? second
                                                                   : nullptr;
  rows_->setVisible(staged != nullptr);
  if (staged == nullptr) return;
  rows_->addItem(tr("stages alone"));
  for (const StageRun& run : staged->stages()) {
    rows_->addItem(tr("and %1").arg(QString::fromStdString(name_of(run))));
  }
  rows_->setCurrentIndex(std::clamp(before, 0, rows_->count() - 1));
}

int TimelinePage::stage(const StrategyStudy& strategy) const {
  const int chosen = rows_->currentIndex() - 1;
  if (!strategy.has_pipeline() || chosen < 0) return kOwnStage;
  return std::min(chosen, static_cast<int>(strategy.stages().size()) - 1);
}

TimelineData TimelinePage::data_of(const StrategyStudy& strategy, int source) {
  const Study& study = *session_.study();
  names_[source] = op_names(study, strategy, stage(strategy));
  return timeline_data(study, strategy, names_[source],
                       {stage(strategy), rows_->currentIndex() != 0});
}

void TimelinePage::show_span(std::int32_t event, std::size_t lane) {
  const Lane& shown = plot_->data().lanes[lane];
  if (const StrategyStudy* one = strategy(shown.source)) {
    const bool work = static_cast<bool>(shown.number);
    card_->set_table(
        work ? work_card(*one, steady_step(*one).from, shown.stage, event)
             : cost_card(*session_.study(), *one, *names_[shown.source], event, shown.stage));
    const auto at = static_cast<std::size_t>(event);
    const auto& time = run_of(*one, shown.stage).timeline->events[at];
    live_->set_table(live_table(*one, to_seconds(time.start), shown.stage));
  }
  show_found();
}

void TimelinePage::show_strategies(const QString& first, const QString& second) {
  strategy_->setCurrentIndex(strategy_->findData(first));
  beside_->setCurrentIndex(beside_->findData(second));
  refill();
}

void TimelinePage::refill() {
  stale_ = !isVisible();
  if (stale_ || !session_.study()) return;
  list_strategies();
  list_stages();
  card_->set_table({});
  live_->set_table({});
  const StrategyStudy* first = strategy(0);
  const StrategyStudy* second = strategy(1);
  if (first == nullptr) return plot_->set_data({});
  TimelineData chart = data_of(*first, 0);
  double length = steady_step(*first).length();
  if (second != nullptr) {
    chart = side_by_side(std::move(chart), strategy_->currentText(), data_of(*second, 1),
                         beside_->currentData().toString());
    length = std::max(length, steady_step(*second).length());
  }
  plot_->set_data(std::move(chart));
  plot_->zoom_to({0, length});
  show_totals();
  show_found();
}

// Of the measured range, else of what is visible.
void TimelinePage::show_totals() {
  const StrategyStudy* first = strategy(0);
  if (stale_ || first == nullptr || !names_[0]) return;
  const TimelinePlot::Range range = plot_->measured().value_or(plot_->visible());
  range_->setText(
      (plot_->measured() ? tr("Totals of the %1 measured") : tr("Totals of the %1 shown"))
          .arg(seconds_text(range.length())));
  const auto by = static_cast<TotalsBy>(by_->currentIndex());
  totals_->set_table(range_totals(*first, *names_[0], range, by, stage(*first)));
}

void TimelinePage::show_found() {
  const TimelinePlot::Matches matches = plot_->matches(search_->text());
  found_->setText(search_->text().isEmpty() ? QString()
                  : matches.count == 0      ? tr("none")
                  : matches.at == 0         ? tr("%1").arg(matches.count)
                                            : tr("%1 of %2").arg(matches.at).arg(matches.count));
}

QString TimelinePage::found() const { return found_->text(); }

}  // namespace zl::gui
