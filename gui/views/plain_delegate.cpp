#include "gui/views/plain_delegate.h"

#include <QApplication>
#include <QPainter>
#include <cmath>

namespace zl::gui {
namespace {

constexpr int kMostLines = 4096;  // kept

const QStyle& style_of(const QStyleOptionViewItem& option) {
  return option.widget != nullptr ? *option.widget->style() : *QApplication::style();
}

// Left and right of a text, as Qt's own styles have it.
int margin(const QStyleOptionViewItem& option) {
  return style_of(option).pixelMetric(QStyle::PM_FocusFrameHMargin, &option, option.widget) + 1;
}

bool is_plain(const QStyleOptionViewItem& option, const QModelIndex& index) {
  return !(option.features & QStyleOptionViewItem::WrapText) &&
         !index.data(Qt::CheckStateRole).isValid() && !index.data(Qt::DecorationRole).isValid();
}

QFont font_of(const QStyleOptionViewItem& option, const QModelIndex& index) {
  const QVariant font = index.data(Qt::FontRole);
  return font.isValid() ? font.value<QFont>().resolve(option.font) : option.font;
}

QPen pen_of(const QStyleOptionViewItem& option, const QModelIndex& index) {
  const auto group = !(option.state & QStyle::State_Enabled)  ? QPalette::Disabled
                     : !(option.state & QStyle::State_Active) ? QPalette::Inactive
                                                              : QPalette::Active;
  if (option.state & QStyle::State_Selected) {
    return option.palette.color(group, QPalette::HighlightedText);
  }
  const QVariant color = index.data(Qt::ForegroundRole);
  return color.isValid() ? color.value<QColor>() : option.palette.color(group, QPalette::Text);
}

}  // namespace

const QStaticText& PlainDelegate::line(const QString& text, const QFont& font) const {
  QFont regular = font;
  regular.setBold(false);
  if (regular != font_ || plain_.size() + bold_.size() > kMostLines) {
    plain_.clear();
    bold_.clear();
    font_ = regular;
  }
  QHash<QString, QStaticText>& lines = font.bold() ? bold_ : plain_;
  auto found = lines.find(text);
  if (found == lines.end()) {
    found = lines.insert(text, QStaticText(text));
    found->setTextFormat(Qt::PlainText);
    found->prepare({}, font);
  }
  return *found;
}

void PlainDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                          const QModelIndex& index) const {
  if ((option.state & QStyle::State_HasFocus) || !is_plain(option, index)) {
    return QStyledItemDelegate::paint(painter, option, index);
  }
  style_of(option).drawPrimitive(QStyle::PE_PanelItemViewItem, &option, painter, option.widget);
  const QFont font = font_of(option, index);
  const QString text = index.data(Qt::DisplayRole).toString();
  const QRect room = option.rect.adjusted(margin(option), 0, -margin(option), 0);
  const QStaticText* shown = &line(text, font);
  if (shown->size().width() > room.width()) {
    shown = &line(QFontMetrics(font).elidedText(text, option.textElideMode, room.width()), font);
  }
  const QSizeF size = shown->size();
  const auto align = index.data(Qt::TextAlignmentRole).toInt();
  const double left =
      (align & Qt::AlignRight) != 0 ? room.right() + 1 - std::ceil(size.width()) : room.left();
  painter->setFont(font);
  painter->setPen(pen_of(option, index));
  painter->drawStaticText(
      QPointF(left, room.top() + std::floor((room.height() - size.height()) / 2)), *shown);
}

QSize PlainDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  if (!is_plain(option, index)) return QStyledItemDelegate::sizeHint(option, index);
  const QSizeF size = line(index.data(Qt::DisplayRole).toString(), font_of(option, index)).size();
  return {static_cast<int>(std::ceil(size.width())) + 2 * margin(option),
          static_cast<int>(std::ceil(size.height()))};
}

}  // namespace zl::gui
