#include "gui/views/compare_page.h"

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "core/base/error.h"
#include "gui/models/chart_data.h"
#include "gui/models/comparison.h"
#include "gui/models/table_model.h"
#include "gui/views/chart_page.h"
#include "gui/views/folding_row.h"
#include "gui/views/table_view.h"
#include "simulator/ratio.h"

namespace zl::gui {
ComparePage::ComparePage(Session& session, RunModel& runs, QWidget* parent)
    : QWidget(parent), session_(session), runs_(runs) {
  configuration_ = new TableModel(this);
  metrics_ = new TableModel(this);
  contributors_ = new TableModel(this);
  memory_ = new LinePlot(tr("Memory over time"));
  message_ = new QLabel;
  message_->setWordWrap(true);
  message_->hide();
  ratio_ = new QLabel;
  ratio_->setWordWrap(true);
  ratio_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* bar = new QHBoxLayout;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    Side& side = sides_[i];
    side.choice = new QComboBox;
    side.choice->setAccessibleName(i == 0 ? tr("A") : tr("B"));
    side.choice->setMinimumContentsLength(14);
    side.choice->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    side.session = new Session(this);
    bar->addWidget(new QLabel(i == 0 ? tr("A") : tr("B")));
    bar->addWidget(side.choice, 1);
    connect(side.choice, &QComboBox::activated, this, [this, i] { choose(sides_[i]); });
    connect(side.session, &Session::study_changed, this, &ComparePage::show_comparison);
    connect(side.session, &Session::failed, this, &ComparePage::show_message);
  }
  auto* causes = new QSplitter(Qt::Vertical);
  causes->addWidget(titled(tr("Configured differently"),
                           make_table_view(configuration_, tr("Configuration"), this)));
  causes->addWidget(titled(tr("Difference at the peaks"),
                           make_table_view(contributors_, tr("Contributors"), this)));
  auto* lower = new FoldingSplitter;
  lower->addWidget(new ChartPage(memory_));
  lower->addWidget(causes);
  auto* splitter = new QSplitter(Qt::Vertical);
  // All of its width: a verdict belongs beside its metric.
  splitter->addWidget(titled(tr("What changes"), make_table_view(metrics_, tr("Metrics"), this)));
  splitter->addWidget(lower);
  splitter->setSizes({200, 300});
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(bar);
  layout->addWidget(message_);
  layout->addWidget(ratio_);
  layout->addWidget(splitter, 1);
  connect(&session, &Session::study_changed, this, &ComparePage::list_subjects);
  connect(&session, &Session::baseline_changed, this, [this] {
    if (session_.baseline().isEmpty()) return;
    choose_data(sides_[0], session_.baseline());
    const int apart = index_apart(sides_[1].choice->currentIndex());
    if (apart != sides_[1].choice->currentIndex())
      choose_data(sides_[1], sides_[1].choice->itemData(apart));
  });
  connect(&session, &Session::selection_changed, this, [this] {
    const QStringList& names = session_.selection();
    if (names.size() == 2) compare_strategies(names[0], names[1]);
  });
  connect(&runs, &RunModel::runs_changed, this, &ComparePage::list_subjects);
}

void ComparePage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (stale_) list_subjects();
}

// A strategy is a text, a stored run its id.
void ComparePage::list_subjects() {
  stale_ = !isVisible();
  if (stale_) return;
  const auto study = session_.study();
  constexpr int kNewest = 200;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    QComboBox* choice = sides_[i].choice;
    const QVariant before = choice->currentData();
    const QSignalBlocker quiet(choice);
    choice->clear();
    if (study) {
      for (const StrategyStudy& each : study->strategies) {
        const QString name = QString::fromStdString(each.name());
        choice->addItem(tr("%1 (simulated here)").arg(name), name);
      }
    }
    for (int row = 0; row < std::min(kNewest, runs_.rowCount()); ++row) {
      const RunSummary& run = runs_.run(row);
      choice->addItem(
          tr("run %1: %2, %3, %4")
              .arg(run.id)
              .arg(QString::fromStdString(run.scenario_name), QString::fromStdString(run.strategy),
                   QString::fromStdString(run.backend)),
          qlonglong(run.id));
    }
    int index = before.isValid() ? choice->findData(before) : -1;
    if (index < 0) {
      index = std::min(static_cast<int>(i), choice->count() - 1);
      if (i == 1) index = index_apart(index);
    }
    choice->setCurrentIndex(index);
    choose(sides_[i]);
  }
}

void ComparePage::choose_data(Side& side, const QVariant& subject) {
  if (stale_) {
    // Listing then finds the choice and keeps it.
    const QSignalBlocker quiet(side.choice);
    if (side.choice->findData(subject) < 0) side.choice->addItem(subject.toString(), subject);
  }
  const int index = side.choice->findData(subject);
  if (index < 0) return;
  side.choice->setCurrentIndex(index);
  if (!stale_) choose(side);
}

// The choice of B, or the first that is not A: what is compared with itself says nothing.
int ComparePage::index_apart(int index) const {
  const QVariant a = sides_[0].choice->currentData();
  const QComboBox& b = *sides_[1].choice;
  if (b.itemData(index) != a) return index;
  for (int i = 0; i < b.count(); ++i) {
    if (b.itemData(i) != a) return i;
  }
  return index;
}

void ComparePage::compare_strategies(const QString& a, const QString& b) {
  choose_data(sides_[0], a);
  choose_data(sides_[1], b);
}

void ComparePage::compare_runs(qint64 a, qint64 b) {
  choose_data(sides_[0], a);
  choose_data(sides_[1], b);
}

void ComparePage::choose(Side& side) {
  const QVariant subject = side.choice->currentData();
  if (!subject.isValid()) return;
  side.label = side.choice->currentText();
  side.result.reset();
  show_message({});
  try {
    if (subject.typeId() == QMetaType::QString) {
      const auto study = session_.study();
      const StrategyStudy* strategy =
          study ? study->find(subject.toString().toStdString()) : nullptr;
      if (strategy) side.session->open(one_strategy_document(*study, *strategy));
      return;
    }
    side.result = runs_.load(subject.toLongLong());
    for (int row = 0; row < runs_.rowCount(); ++row) {
      if (runs_.run(row).id != subject.toLongLong()) continue;
      const RunSummary& run = runs_.run(row);
      side.session->open(
          Document::parse(runs_.scenario_json(run.scenario_hash), run.scenario_name));
    }
  } catch (const Error& error) {
    show_message(error.what());
  }
}

void ComparePage::show_message(const QString& message) {
  message_->setText(message);
  message_->setVisible(!message.isEmpty());
}

void ComparePage::show_comparison() {
  const auto a = sides_[0].session->study(), b = sides_[1].session->study();
  if (!a || !b || a->strategies.empty() || b->strategies.empty()) return;
  if (sides_[0].session->evaluating() || sides_[1].session->evaluating()) return;
  const auto result = [](const Side& side, const Study& study) {
    return side.result ? *side.result : study.strategies[0].result;
  };
  configuration_->set_table(configuration_differences(one_strategy_document(*a, a->strategies[0]),
                                                      one_strategy_document(*b, b->strategies[0])));
  const RunResult of_a = result(sides_[0], *a), of_b = result(sides_[1], *b);
  metrics_->set_table(metric_differences(of_a, of_b));
  ratio_->setText(QString::fromStdString(sim::step_ratio_line(of_a, of_b, "B")));
  ratio_->setVisible(!ratio_->text().isEmpty());
  contributors_->set_table(memory_contributors(a->strategies[0], b->strategies[0]));
  show_memory();
}

QString ComparePage::ratio_text() const { return ratio_->isHidden() ? QString() : ratio_->text(); }

void ComparePage::show_memory() {
  const auto a = sides_[0].session->study(), b = sides_[1].session->study();
  LineData chart = memory_lines(*a, {&a->strategies[0]});
  LineData other = memory_lines(*b, {&b->strategies[0]});
  chart.curves[0].name = "A: " + sides_[0].label;
  other.curves[0].name = "B: " + sides_[1].label;
  // Two runs of one strategy are two curves.
  if (other.curves[0].style == chart.curves[0].style) ++*other.curves[0].style;
  chart.curves.push_back(std::move(other.curves[0]));
  memory_->set_data(std::move(chart));
}

}  // namespace zl::gui
