#include "gui/views/chart_page.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/models/table_model.h"
#include "gui/plot/export.h"
#include "gui/plot/plot.h"
#include "gui/views/folding_row.h"
#include "gui/views/table_view.h"

namespace zl::gui {

ChartPage::ChartPage(Plot* plot, QWidget* parent) : QWidget(parent), plot_(plot) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->setSpacing(2);
  auto* controls = new QWidget;
  header_ = new QHBoxLayout(controls);
  header_->setContentsMargins(0, 0, 0, 0);
  auto* title = new QLabel(plot->title());
  QFont bold = title->font();
  bold.setBold(true);
  title->setFont(bold);
  header_->addStretch(1);
  toggle_ = new QToolButton;
  toggle_->setText(tr("Table"));
  toggle_->setCheckable(true);
  toggle_->setAccessibleName(tr("Show %1 as a table").arg(plot->title()));
  toggle_->setToolTip(tr("Show as table (T)"));
  header_->addWidget(toggle_);
  auto* save = new QToolButton;
  save->setText(tr("Export…"));
  save->setAccessibleName(tr("Export %1").arg(plot->title()));
  save->setToolTip(tr("PNG, SVG, PDF, CSV or JSON"));
  header_->addWidget(save);
  auto* head = new FoldingRow(title, title->sizeHint().width(), controls);
  head->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  layout->addWidget(head);
  model_ = new TableModel(this);
  view_ = make_table_view(model_, plot->title(), this);
  stack_ = new QStackedWidget;
  stack_->addWidget(plot);
  stack_->addWidget(view_);
  layout->addWidget(stack_, 1);
  connect(toggle_, &QToolButton::toggled, this, &ChartPage::show_as_table);
  connect(save, &QToolButton::clicked, this, &ChartPage::export_as);
  connect(plot, &Plot::data_changed, this, &ChartPage::refill);
}

void ChartPage::add_control(QWidget* control) {
  header_->insertWidget(header_->count() - 2, control);
}

bool ChartPage::shows_table() const { return stack_->currentWidget() == view_; }

void ChartPage::show_as_table(bool table) {
  stack_->setCurrentWidget(table ? static_cast<QWidget*>(view_) : plot_);
  toggle_->setChecked(table);
  refill();
}

void ChartPage::refill() {
  if (shows_table()) model_->set_table(plot_->table());
}

void ChartPage::export_as() {
  const QString file =
      QFileDialog::getSaveFileName(this, tr("Export %1").arg(plot_->title()),
                                   plot_->title().toLower().replace(' ', '-') + ".svg",
                                   tr("Pictures and data (*.png *.svg *.pdf *.csv *.json)"));
  if (!file.isEmpty()) export_plot(*plot_, with_suffix(file, ".svg"));
}

QWidget* titled(const QString& title, QWidget* widget) {
  auto* box = new QWidget;
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->setSpacing(2);
  auto* label = new QLabel(title);
  label->setWordWrap(true);
  QFont bold = label->font();
  bold.setBold(true);
  label->setFont(bold);
  layout->addWidget(label);
  layout->addWidget(widget);
  return box;
}

}  // namespace zl::gui
