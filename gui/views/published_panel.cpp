#include "gui/views/published_panel.h"

#include <QComboBox>
#include <QDesktopServices>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/error.h"
#include "gui/models/run_model.h"
#include "gui/models/table_model.h"
#include "gui/views/chart_page.h"
#include "gui/views/table_view.h"
#include "scenarios/published/validate_tables.h"

namespace zl::gui {

PublishedPanel::PublishedPanel(const RunModel& runs, QWidget* parent)
    : QWidget(parent), database_(runs), background_(new Background(this)) {
  button_ = new QPushButton;
  quantity_ = new QComboBox;
  quantity_->addItems({tr("time of a step"), tr("memory of a device")});
  quantity_->setAccessibleName(tr("What was measured"));
  state_ = new QLabel(tr("Runs that others published, as `zerolab validate` predicts them."));
  state_->setWordWrap(true);
  accuracy_ = new TableModel(this);
  runs_ = new TableModel(this);
  QTableView* all = make_table_view(runs_, tr("Published runs"), this);
  all->setToolTip(tr("Enter or double click opens the source of a run"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(state_, 1);
  bar->addWidget(quantity_);
  bar->addWidget(button_);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(titled(tr("By software and GPU"),
                             make_table_view(accuracy_, tr("Accuracy by software"), this)));
  splitter->addWidget(titled(tr("Every run that is predicted"), all));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(bar);
  layout->addWidget(splitter, 1);
  connect(button_, &QPushButton::clicked, this, qOverload<>(&PublishedPanel::start));
  connect(quantity_, &QComboBox::currentIndexChanged, this, &PublishedPanel::show_found);
  connect(all, &QTableView::activated, this, [this, all] {
    const int row = current_row(*all);
    if (row < 0) return;
    const Cell& link = runs_->table().rows[static_cast<std::size_t>(row)].back();
    const QUrl url(QString::fromStdString(std::get<std::string>(link)));
    if (url.isValid() && !url.isEmpty()) QDesktopServices::openUrl(url);
  });
  connect(background_, &Background::failed, this, [this](const QString& message) {
    state_->setText(message);
    show_button();
  });
  show_button();
}

void PublishedPanel::start() {
  if (!running()) return start(catalog_published());
  background_->cancel();
  state_->setText(tr("Stopped."));
  show_button();
}

void PublishedPanel::start(std::vector<PublishedRun> runs) {
  state_->setText(tr("Predicting %1 published runs…").arg(runs.size()));
  auto found = std::make_shared<StoredValidation>();
  found->runs = std::move(runs);
  background_->start([this, found](const Background::Link& link) -> Background::Deliver {
    const auto memory =
        std::stable_partition(found->runs.begin(), found->runs.end(),
                              [](const PublishedRun& run) { return !is_memory(run); });
    found->times = judge_times({found->runs.begin(), memory}, link);
    found->bytes = judge_published_memory({memory, found->runs.end()});
    return [this, found] {
      found_ = found;
      show_found();
      keep();
    };
  });
  show_button();
}

// Some at a time: between them it can be stopped, and says how far it is.
std::vector<Judged> PublishedPanel::judge_times(std::span<const PublishedRun> runs,
                                                const Background::Link& link) {
  constexpr std::size_t kAtOnce = 32;
  std::vector<Judged> all;
  while (all.size() < runs.size() && !link.cancelled) {
    const auto some = runs.subspan(all.size(), std::min(kAtOnce, runs.size() - all.size()));
    for (Judged& each : judge_published(some)) all.push_back(std::move(each));
    const QString text = tr("Predicted %1 of %2 published runs…").arg(all.size()).arg(runs.size());
    link.deliver([this, text] { state_->setText(text); });
  }
  return all;
}

void PublishedPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  load();
}

void PublishedPanel::load() {
  if (running()) return;
  try {
    const auto stored = Store::open_any_version(database_.path()).published();
    if (stored.empty()) return;
    found_ = std::make_shared<const StoredValidation>(stored);
    show_found();
  } catch (const Error&) {
    return;  // there is none yet, or the Runs page says what is wrong with it
  }
}

void PublishedPanel::keep() {
  try {
    Store store = Store::open(database_.path(), Store::Mode::read_write);
    store.keep_published(as_stored(found_->times, false));
    store.keep_published(as_stored(found_->bytes, true));
  } catch (const Error& error) {
    state_->setText(error.what());
  }
}

void PublishedPanel::show_found() {
  show_button();
  if (!found_) return;
  const bool bytes = quantity_->currentIndex() == 1;
  const std::vector<Judged>& judged = bytes ? found_->bytes : found_->times;
  accuracy_->set_table(accuracy_table(accuracy_by_software(judged), false));
  runs_->set_table(judged_table(judged, bytes ? Unit::bytes : Unit::seconds));
  QStringList why;
  for (const auto& [reason, count] : reasons(judged)) {
    why << tr("%1 (%2)").arg(QString::fromStdString(reason)).arg(count);
  }
  state_->setText(tr("%1 of %2 runs are predicted.").arg(runs_->rowCount()).arg(judged.size()) +
                  "\n" + QString::fromStdString(headline(judged)).trimmed());
  state_->setToolTip(why.isEmpty() ? QString() : tr("The others: %1").arg(why.join("; ")));
}

void PublishedPanel::show_button() {
  button_->setText(running() ? tr("Sto&p") : tr("&Predict them"));
}

QString PublishedPanel::state() const { return state_->text(); }

}  // namespace zl::gui
