#include "gui/views/explore_page.h"

#include <QComboBox>
#include <QCoreApplication>
#include <QEventLoop>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/base/nearest.h"
#include "gui/models/comparison.h"
#include "gui/models/strategy_text.h"
#include "gui/models/table_model.h"
#include "gui/plot/parallel_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/table_view.h"

namespace zl::gui {
namespace {

// The distinct texts of a column, sorted, as an axis; `value` finds a text's place on it.
struct Categories {
  std::vector<QString> names;

  void add(const QString& name) {
    const auto at = std::lower_bound(names.begin(), names.end(), name);
    if (at == names.end() || *at != name) names.insert(at, name);
  }
  double value(const QString& name) const {
    return static_cast<double>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
  }
};

double or_none(double value) { return value > 0 ? value : NAN; }

}  // namespace

ExplorePage::ExplorePage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), sweep_(new Sweep(this)) {
  strategy_ = new QComboBox;
  strategy_->setAccessibleName(tr("Strategy to vary"));
  strategy_->setMinimumContentsLength(20);
  state_ = new QLabel;
  auto* button = new QPushButton(tr("&Add to the scenario"));
  button->setToolTip(tr("Enter or double click in the table; undo takes it back"));
  auto* bar = new QHBoxLayout;
  auto* hint = new QLabel(tr("Drag along an axis to keep a range, click it to let go."));
  hint->setForegroundRole(QPalette::PlaceholderText);
  hint->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // the button stays in sight
  bar->addWidget(new QLabel(tr("Vary:")));
  bar->addWidget(strategy_);
  bar->addWidget(hint, 1);
  bar->addWidget(button);
  plot_ = new ParallelPlot(tr("Every combination"));
  plot_->set_empty_text(tr("The combinations appear here while they are tried."));
  plot_->setToolTip(tr("Drag along an axis to keep a range; click it to let go"));
  table_ = new TableModel(this);
  view_ = make_table_view(table_, tr("Combinations"), this);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(new ChartPage(plot_));
  splitter->addWidget(view_);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(bar);
  layout->addWidget(state_);
  layout->addWidget(splitter, 1);
  on_row_taken(view_, button, [this](int row) { add(row); });
  on_row_reached(view_, [this](int row) {
    plot_->set_highlighted(row < 0 ? std::vector<int>{} : std::vector{listed_[row]});
  });
  connect(strategy_, &QComboBox::activated, this, &ExplorePage::start);
  connect(plot_, &ParallelPlot::brushed, this, &ExplorePage::show_table);
  connect(&session, &Session::study_changed, this, [this] {
    if (isVisible()) start();
  });
  connect(sweep_, &Sweep::found, this, &ExplorePage::take);
  connect(sweep_, &Sweep::finished, this, &ExplorePage::show_rows);
}

void ExplorePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (asked_ != session_.study()) start();
}

void ExplorePage::start() {
  asked_ = session_.study();
  if (!asked_) return;
  list_strategies();
  const StrategyStudy* varied = asked_->find(strategy_->currentText().toStdString());
  if (varied == nullptr) return;
  // Strategies that joined or left change nothing of it, and what was brushed stays.
  const std::string alone = one_strategy_document(*asked_, *varied).text();
  if (alone == swept_) return;
  swept_ = alone;
  rows_.clear();
  tabled_.invalidate();
  show_rows();
  sweep_->start(asked_, varied->name());
}

void ExplorePage::list_strategies() {
  const QString before = strategy_->currentText();
  strategy_->clear();
  for (const StrategyStudy& each : asked_->strategies) {
    strategy_->addItem(QString::fromStdString(each.name()));
  }
  strategy_->setCurrentIndex(std::max(0, strategy_->findText(before)));
}

void ExplorePage::wait() {
  while (sweep_->running()) {
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents |
                                    QEventLoop::ExcludeUserInputEvents);
  }
}

void ExplorePage::take(const std::vector<SweepRow>& rows, int of) {
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  state_->setText(tr("%1 of %2 combinations").arg(rows_.size()).arg(of));
  show_rows();
}

void ExplorePage::show_rows() {
  Categories recompute, offload, schedule;
  for (const SweepRow& row : rows_) {
    schedule.add(QString::fromStdString(row.schedule));
    recompute.add(QString::fromStdString(row.recompute));
    offload.add(QString::fromStdString(row.offload));
  }
  const bool limited = asked_ && asked_->budget > 0;
  const auto capacity = limited ? std::optional(static_cast<double>(asked_->budget)) : std::nullopt;
  ParallelData chart;
  chart.axes = {{tr("ZeRO stage"), Unit::none, {"0", "1", "2", "3"}},
                {tr("recomputation"), Unit::none, recompute.names},
                {tr("offload"), Unit::none, offload.names},
                {tr("micro-batch")},
                {tr("tensor")},
                {tr("pipeline")},
                {tr("schedule"), Unit::none, schedule.names},
                {tr("peak device"), Unit::bytes, {}, capacity},
                {tr("step time"), Unit::seconds},
                {tr("tokens/s")}};
  if (rows_.empty()) chart.axes.clear();
  int sure = 0, doubtful = 0;
  for (const SweepRow& row : rows_) {
    sure += row.fits == Fits::yes ? 1 : 0;
    doubtful += row.fits == Fits::maybe ? 1 : 0;
    chart.lines.push_back(
        {QString::fromStdString(row.variation.name),
         {static_cast<double>(row.stage), recompute.value(QString::fromStdString(row.recompute)),
          offload.value(QString::fromStdString(row.offload)), static_cast<double>(row.micro_batch),
          static_cast<double>(row.tensor), static_cast<double>(row.pipeline),
          schedule.value(QString::fromStdString(row.schedule)),
          or_none(static_cast<double>(row.peak_device)), or_none(row.step_time),
          or_none(row.tokens_per_second)},
         row.fits != Fits::no});
  }
  plot_->set_data(std::move(chart));
  // A table that is made anew under the mouse loses the second click of two.
  constexpr int kBetweenTables = 1000;  // milliseconds, while combinations come in
  if (!sweep_->running() || !tabled_.isValid() || tabled_.elapsed() > kBetweenTables) {
    show_table(plot_->kept());
  }
  if (!rows_.empty() && !sweep_->running()) {
    const QString more = doubtful > 0 ? tr(", %1 more may").arg(doubtful) : QString();
    state_->setText(tr("%1 of %2 combinations fit").arg(sure).arg(rows_.size()) + more);
  }
}

// Those that fit first, then those that may, the fastest of each on top. The one under the cursor
// stays under it.
void ExplorePage::show_table(const std::vector<int>& kept) {
  tabled_.start();
  const int before = current_row(*view_);
  const int chosen = before < 0 ? -1 : listed_.at(static_cast<std::size_t>(before));
  listed_ = kept;
  const auto row = [this](int i) -> const SweepRow& { return rows_[i]; };
  std::stable_sort(listed_.begin(), listed_.end(), [&](int a, int b) {
    if (row(a).fits != row(b).fits) return row(a).fits < row(b).fits;
    return row(a).tokens_per_second > row(b).tokens_per_second;
  });
  Table table;
  table.columns = {{"fits", Align::left},
                   {"tokens/s", Align::right},
                   {"step time", Align::right, Unit::seconds},
                   {"peak device", Align::right, Unit::bytes},
                   {"headroom", Align::right, Unit::bytes},
                   {"changes", Align::left}};
  for (const int i : listed_) {
    const SweepRow& each = row(i);
    const auto& changes = each.variation.changes;
    table.rows.push_back({fits_text(each.fits), each.tokens_per_second, each.step_time,
                          each.peak_device,
                          asked_->budget > 0 ? Cell(asked_->budget - each.reserved) : Cell(),
                          changes.empty() ? tr("as it is").toStdString() : join(changes, ", ")});
  }
  table_->set_table(std::move(table));
  const auto found = std::ranges::find(listed_, chosen);
  if (chosen < 0 || found == listed_.end()) return;
  set_current_row(*view_, static_cast<int>(found - listed_.begin()));
}

void ExplorePage::add(int row) {
  if (row < 0 || row >= static_cast<int>(listed_.size())) return;
  const Variation variation = rows_[listed_[row]].variation;
  const StrategyStudy* same =
      variation.changes.empty() ? asked_->find(variation.name) : same_strategy(*asked_, variation);
  if (same != nullptr) {
    const QString twin = QString::fromStdString(same->name());
    state_->setText(tr("That is %1, which is in the scenario already.").arg(twin));
    return session_.select({twin});
  }
  const Variation added = with_free_name(*asked_, variation);
  std::vector<std::string> strategies = listed_strategies(*asked_);
  strategies.push_back(added.json);
  session_.edit(asked_->document.with_strategies(strategies),
                tr("Add %1").arg(QString::fromStdString(added.name)));
}

}  // namespace zl::gui
