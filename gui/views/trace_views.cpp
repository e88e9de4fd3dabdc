#include "gui/views/trace_views.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QShortcut>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/chart_data.h"
#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"

namespace zl::gui {
namespace {

// Fills the list with the strategies shown and keeps the choice where it can.
void list_strategies(const Session& session, QComboBox* combo) {
  const QString before = combo->currentText();
  const QSignalBlocker quiet(combo);
  combo->clear();
  for (const StrategyStudy* each : session.shown()) {
    combo->addItem(QString::fromStdString(each->name()));
  }
  if (combo->findText(before) >= 0) {
    combo->setCurrentText(before);
  } else if (const StrategyStudy* current = session.current()) {
    combo->setCurrentText(QString::fromStdString(current->name()));
  }
}

const StrategyStudy* chosen(const Session& session, const QComboBox* combo) {
  return session.study() ? session.study()->find(combo->currentText().toStdString()) : nullptr;
}

}  // namespace

MemoryTimePage::MemoryTimePage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session) {
  plot_ = new LinePlot(tr("Memory over time"));
  auto* chart = new ChartPage(plot_);
  auto* peak = new QPushButton(tr("Jump to &peak"));
  peak->setToolTip(tr("P in the chart; click or arrow keys choose another moment"));
  strategy_ = new QComboBox;
  strategy_->setAccessibleName(tr("Strategy whose live blocks are listed"));
  chart->add_control(peak);
  live_ = new TableModel(this);
  moment_ = new QLabel;
  moment_->setWordWrap(true);
  auto* side = new QWidget;
  auto* side_layout = new QVBoxLayout(side);
  side_layout->setContentsMargins(4, 4, 4, 4);
  side_layout->addWidget(moment_);
  side_layout->addWidget(strategy_);
  side_layout->addWidget(make_table_view(live_, tr("Live blocks"), this), 1);
  auto* splitter = new QSplitter;
  splitter->addWidget(chart);
  splitter->addWidget(side);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);
  connect(&session, &Session::study_changed, this, &MemoryTimePage::refill);
  connect(&session, &Session::selection_changed, this, &MemoryTimePage::refill);
  connect(strategy_, &QComboBox::currentIndexChanged, this, &MemoryTimePage::show_live);
  connect(plot_, &LinePlot::cursor_moved, this, [this] {
    at_peak_ = false;
    show_live();
  });
  connect(peak, &QPushButton::clicked, this, [this] {
    plot_->set_cursor_to_peak();
    at_peak_ = true;
  });
  refill();
}

void MemoryTimePage::refill() {
  if (!session_.study()) return;
  list_strategies(session_, strategy_);
  plot_->set_data(memory_lines(*session_.study(), session_.shown()));
  if (at_peak_) {
    plot_->set_cursor_to_peak();
    at_peak_ = true;
  }
  show_live();
}

void MemoryTimePage::show_live() {
  const StrategyStudy* strategy = chosen(session_, strategy_);
  if (strategy == nullptr || !plot_->cursor()) return live_->set_table({});
  Table live = live_table(*strategy, *plot_->cursor());
  std::int64_t total = 0;
  for (const auto& row : live.rows) total += std::get<std::int64_t>(row[kLiveBytes]);
  moment_->setText(
      tr("Live at %1: %2")
          .arg(seconds_text(*plot_->cursor()), bytes_text(static_cast<double>(total))));
  live_->set_table(std::move(live));
}

TimelinePage::TimelinePage(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  plot_ = new TimelinePlot(tr("Timeline"));
  auto* chart = new ChartPage(plot_);
  strategy_ = new QComboBox;
  strategy_->setAccessibleName(tr("Strategy of the timeline"));
  search_ = new QLineEdit;
  search_->setPlaceholderText(tr("Search (/)"));
  search_->setAccessibleName(tr("Search an operation"));
  search_->setMaximumWidth(160);
  chart->add_control(search_);
  chart->add_control(strategy_);
  auto* keys = new QLabel(tr("W S zoom · A D pan · F focus · drag measures · 0 all"));
  keys->setForegroundRole(QPalette::PlaceholderText);
  chart->layout()->addWidget(keys);
  card_ = new TableModel(this);
  live_ = new TableModel(this);
  auto* side = new QSplitter(Qt::Horizontal);
  side->addWidget(
      titled(tr("Cost of the operation you click"), make_table_view(card_, tr("Cost card"), this)));
  side->addWidget(
      titled(tr("Live at that moment"), make_table_view(live_, tr("Live blocks"), this)));
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(chart);
  splitter->addWidget(side);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(splitter);
  connect(&session, &Session::study_changed, this, &TimelinePage::refill);
  connect(&session, &Session::selection_changed, this, [this] {
    strategy_->clear();
    refill();
  });
  connect(strategy_, &QComboBox::activated, this, &TimelinePage::refill);
  connect(plot_, &TimelinePlot::span_selected, this, [this](std::int32_t event) {
    if (strategy()) card_->set_table(cost_card(*session_.study(), *strategy(), event));
  });
  connect(plot_, &TimelinePlot::moment_selected, this, [this](double seconds) {
    if (strategy()) live_->set_table(live_table(*strategy(), seconds));
  });
  connect(search_, &QLineEdit::returnPressed, this, [this] { plot_->find_next(search_->text()); });
  auto* slash = new QShortcut(QKeySequence("/"), this);
  slash->setContext(Qt::WidgetWithChildrenShortcut);
  connect(slash, &QShortcut::activated, search_, [this] { search_->setFocus(); });
  refill();
}

const StrategyStudy* TimelinePage::strategy() const { return chosen(session_, strategy_); }

void TimelinePage::refill() {
  if (!session_.study()) return;
  list_strategies(session_, strategy_);
  card_->set_table({});
  live_->set_table({});
  if (strategy() == nullptr) return plot_->set_data({});
  plot_->set_data(timeline_data(*session_.study(), *strategy()));
  plot_->zoom_to(steady_step(*strategy()));
}

}  // namespace zl::gui
