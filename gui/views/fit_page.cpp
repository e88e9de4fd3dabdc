#include "gui/views/fit_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "core/base/nearest.h"
#include "gui/models/strategy_text.h"
#include "gui/models/table_model.h"
#include "gui/views/table_view.h"

namespace zl::gui {

FitPage::FitPage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), evaluation_(new Session(this)) {
  strategy_ = new QComboBox;
  strategy_->setAccessibleName(tr("Strategy to make fit"));
  strategy_->setMinimumContentsLength(20);
  state_ = new QLabel;
  state_->setWordWrap(true);
  auto* button = new QPushButton(tr("&Apply the selected change"));
  button->setToolTip(tr("Enter or double click in the table; undo takes it back"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Make it fit:")));
  bar->addWidget(strategy_);
  bar->addStretch(1);
  bar->addWidget(button);
  table_ = new TableModel(this);
  view_ = make_table_view(table_, tr("Changes that make it fit"), this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(bar);
  layout->addWidget(state_);
  layout->addWidget(view_, 1);
  on_row_taken(view_, button, [this](int row) { apply(row); });
  connect(strategy_, &QComboBox::activated, this, &FitPage::refill);
  connect(&session, &Session::study_changed, this, [this] {
    if (isVisible()) refill();
  });
  connect(evaluation_, &Session::study_changed, this, &FitPage::show_advice);
  connect(evaluation_, &Session::failed, state_, &QLabel::setText);
}

void FitPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (asked_ != session_.study()) refill();
}

const StrategyStudy* FitPage::strategy() const {
  return asked_ ? asked_->find(strategy_->currentText().toStdString()) : nullptr;
}

void FitPage::refill() {
  asked_ = session_.study();
  candidates_.clear();
  advice_.clear();
  table_->set_table({});
  if (!asked_) return;
  const QString before = strategy_->currentText();
  strategy_->clear();
  for (const StrategyStudy& each : asked_->strategies) {
    if (!each.fits()) strategy_->addItem(QString::fromStdString(each.name()));
  }
  strategy_->setCurrentIndex(std::max(0, strategy_->findText(before)));
  if (strategy() == nullptr) {
    return state_->setText(tr("Every strategy fits the device: there is nothing to change."));
  }
  candidates_ = fit_candidates(*asked_, *strategy());
  if (candidates_.empty()) return state_->setText(tr("Nothing is left to change."));
  state_->setText(tr("Trying %1 combinations…").arg(candidates_.size()));
  evaluation_->open(fit_document(*asked_, candidates_));
}

void FitPage::show_advice() {
  if (strategy() == nullptr) return;
  advice_ = fit_advice(*evaluation_->study(), *strategy(), candidates_);
  Table table;
  // In a small window the first three are in sight.
  table.columns = {{"fits", Align::left},
                   {"price", Align::right, Unit::fraction},
                   {"what to change", Align::left},
                   {"step time", Align::right, Unit::seconds},
                   {"peak device", Align::right, Unit::bytes},
                   {"headroom", Align::right, Unit::bytes},
                   {"changes", Align::right}};
  for (const FitAdvice& each : advice_) {
    table.rows.push_back({fits_text(each.fits), each.price, join(each.candidate->changes, ", "),
                          each.step_time, each.peak, asked_->budget - each.reserved,
                          static_cast<std::int64_t>(each.candidate->changes.size())});
  }
  state_->setText(advice_.empty()
                      ? tr("None of %1 combinations fits: use more ranks or a larger device. %2")
                            .arg(candidates_.size())
                            .arg(QString::fromStdString(strategy()->result.message))
                      : tr("%1 of %2 combinations fit. The price is in step time, against the "
                           "strategy on a device that had the memory.")
                            .arg(advice_.size())
                            .arg(candidates_.size()));
  table_->set_table(std::move(table));
  view_->selectRow(0);
}

void FitPage::apply(int row) {
  if (row < 0 || row >= static_cast<int>(advice_.size()) || strategy() == nullptr) return;
  const Variation candidate = *advice_[row].candidate;
  const QString name = strategy_->currentText();
  if (const StrategyStudy* same = same_strategy(*asked_, candidate)) {
    const QString twin = QString::fromStdString(same->name());
    state_->setText(tr("That is %1, which is in the scenario already.").arg(twin));
    return session_.select({twin});
  }
  // What others are compared with stays to compare with.
  if (session_.baseline() == name) {
    std::vector<std::string> strategies = listed_strategies(*asked_);
    strategies.push_back(with_free_name(*asked_, candidate).json);
    return session_.edit(asked_->document.with_strategies(strategies),
                         tr("Add what fits of %1").arg(name));
  }
  session_.edit(with_variation(*asked_, *strategy(), candidate), tr("Make %1 fit").arg(name));
}

}  // namespace zl::gui
