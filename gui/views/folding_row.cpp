#include "gui/views/folding_row.h"

#include <QBoxLayout>
#include <QEvent>
#include <QResizeEvent>
#include <algorithm>

namespace zl::gui {

FoldingRow::FoldingRow(QWidget* pane, int width, QWidget* wide, QWidget* parent)
    : QWidget(parent),
      pane_(pane),
      wide_(wide),
      width_(width),
      layout_(new QBoxLayout(QBoxLayout::LeftToRight, this)) {
  layout_->setContentsMargins(0, 0, 0, 0);
  layout_->setSizeConstraint(QLayout::SetNoConstraint);
  layout_->addWidget(pane);
  layout_->addWidget(wide, 1);
  fold();
}

QSize FoldingRow::minimumSizeHint() const {
  const int widest = std::max(pane_->minimumSizeHint().width(), wide_->minimumSizeHint().width());
  return {widest, layout_->minimumSize().height()};
}

void FoldingRow::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fold();
}

bool FoldingRow::event(QEvent* event) {
  if (event->type() == QEvent::LayoutRequest) {
    fold();
    updateGeometry();
  }
  return QWidget::event(event);
}

void FoldingRow::fold() {
  const bool beside = width() >= width_ + layout_->spacing() + wide_->minimumSizeHint().width();
  pane_->setMaximumWidth(beside ? width_ : QWIDGETSIZE_MAX);
  pane_->setMinimumWidth(beside ? width_ : 0);
  const auto direction = beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom;
  if (layout_->direction() == direction) return;
  layout_->setDirection(direction);
  updateGeometry();
}

QSize FoldingSplitter::minimumSizeHint() const {
  int widest = 0;
  for (int i = 0; i < count(); ++i) {
    widest = std::max(widest, widget(i)->minimumSizeHint().width());
  }
  return {widest, QSplitter::minimumSizeHint().height()};
}

void FoldingSplitter::resizeEvent(QResizeEvent* event) {
  constexpr int kNarrow = 300;
  int needed = 0;
  for (int i = 0; i < count(); ++i) {
    needed += std::max(kNarrow, widget(i)->minimumSizeHint().width()) + handleWidth();
  }
  setOrientation(width() < needed ? Qt::Vertical : Qt::Horizontal);
  QSplitter::resizeEvent(event);
}

}  // namespace zl::gui
