#include "gui/views/trace_views.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/chart_data.h"
#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
#include "gui/views/chart_views.h"
#include "gui/views/table_view.h"

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
  one_step_ = new QCheckBox(tr("one step each"));
  one_step_->setToolTip(
      tr("The last step of each strategy over the same width, however long it takes"));
  chart->add_control(one_step_);
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
  connect(&session, &Session::filter_changed, this, &MemoryTimePage::refill);
  connect(&session, &Session::selection_changed, this, &MemoryTimePage::choose_selected);
  highlight_selection(session, plot_);
  connect(one_step_, &QCheckBox::toggled, this, [this] {
    at_peak_ = true;  // the axis is another: a moment of the old one means nothing
    refill();
  });
  connect(strategy_, &QComboBox::currentIndexChanged, this, &MemoryTimePage::show_live);
  connect(plot_, &LinePlot::cursor_moved, this, [this] {
    at_peak_ = false;
    show_live();
  });
  connect(peak, &QPushButton::clicked, this, [this] {
    plot_->set_cursor_to_peak();
    at_peak_ = true;
  });
}

void MemoryTimePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) refill();
}

void MemoryTimePage::choose_selected() {
  const StrategyStudy* current = session_.current();
  if (session_.selection().isEmpty() || current == nullptr) return;
  const int index = strategy_->findText(QString::fromStdString(current->name()));
  if (index >= 0) strategy_->setCurrentIndex(index);
}

void MemoryTimePage::refill() {
  stale_ = !isVisible();
  if (stale_ || !session_.study()) return;
  list_strategies(session_, strategy_);
  plot_->set_data(memory_lines(*session_.study(), session_.shown(), one_step_->isChecked()));
  if (at_peak_) {
    plot_->set_cursor_to_peak();
    at_peak_ = true;
  }
  show_live();
}

void MemoryTimePage::show_live() {
  const StrategyStudy* strategy = chosen(session_, strategy_);
  if (strategy == nullptr || !plot_->cursor()) return live_->set_table({});
  const TimelinePlot::Range step = steady_step(*strategy);
  const double at =
      one_step_->isChecked() ? step.from + *plot_->cursor() * step.length() : *plot_->cursor();
  const QString name = QString::fromStdString(strategy->name());
  const double end = to_seconds(strategy->timeline().total);
  if (at > end * (1 + 1e-9)) {
    moment_->setText(tr("%1 ended at %2").arg(name, seconds_text(end)));
    return live_->set_table({});
  }
  Table live = live_table(*strategy, at);
  std::int64_t total = 0;
  for (const auto& row : live.rows) total += std::get<std::int64_t>(row[kLiveBytes]);
  moment_->setText(
      tr("%1, live at %2: %3").arg(name, seconds_text(at), bytes_text(static_cast<double>(total))));
  live_->set_table(std::move(live));
}

QString MemoryTimePage::moment() const { return moment_->text(); }

}  // namespace zl::gui
