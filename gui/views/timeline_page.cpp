#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QShortcut>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
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
  auto* chart = new ChartPage(plot_);
  strategy_ = new QComboBox;
  strategy_->setAccessibleName(tr("Strategy of the timeline"));
  beside_ = new QComboBox;
  beside_->setAccessibleName(tr("Strategy below it"));
  beside_->setToolTip(tr("A second strategy on the same axis, both from the start of their step"));
  for (QComboBox* each : {strategy_, beside_}) {
    each->setMinimumContentsLength(10);
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
  auto* box = new QWidget;
  box->setMinimumWidth(40 * fontMetrics().averageCharWidth());  // a small window scrolls
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->setSpacing(2);
  auto* head = new QHBoxLayout;
  head->addWidget(range_, 1);
  head->addWidget(by_);
  layout->addLayout(head);
  layout->addWidget(make_table_view(totals_, tr("Totals of the range"), this));
  auto* tables = new QSplitter(Qt::Horizontal);
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
    refill();
  });
  connect(strategy_, &QComboBox::activated, this, &TimelinePage::refill);
  connect(beside_, &QComboBox::activated, this, &TimelinePage::refill);
  connect(by_, &QComboBox::currentIndexChanged, this, &TimelinePage::show_totals);
  connect(plot_, &TimelinePlot::range_changed, this, &TimelinePage::show_totals);
  connect(plot_, &TimelinePlot::span_selected, this, [this](std::int32_t event, int source) {
    if (const StrategyStudy* one = strategy(source)) {
      card_->set_table(cost_card(*session_.study(), *one, *names_[source], event));
      const auto& time = one->timeline.events[static_cast<std::size_t>(event)];
      live_->set_table(live_table(*one, static_cast<double>(time.start) * 1e-12));
    }
    show_found();
  });
  connect(plot_, &TimelinePlot::moment_selected, this, [this](double seconds) {
    if (plot_->selected()) return;  // its own strategy is shown already
    if (const StrategyStudy* one = strategy(0)) {
      live_->set_table(live_table(*one, steady_step(*one).from + seconds));
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
  beside_->setCurrentIndex(std::max(0, beside.isValid() ? beside_->findData(beside) : 0));
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
  card_->set_table({});
  live_->set_table({});
  const StrategyStudy* first = strategy(0);
  const StrategyStudy* second = strategy(1);
  if (first == nullptr) return plot_->set_data({});
  const Study& study = *session_.study();
  names_[0] = op_names(study, *first);
  TimelineData chart = timeline_data(study, *first, names_[0]);
  double length = steady_step(*first).length();
  if (second != nullptr) {
    names_[1] = op_names(study, *second);
    chart =
        side_by_side(std::move(chart), strategy_->currentText(),
                     timeline_data(study, *second, names_[1]), beside_->currentData().toString());
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
  totals_->set_table(range_totals(*first, *names_[0], range, by));
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
