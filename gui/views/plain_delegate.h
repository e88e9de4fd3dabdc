// Cells of tables that hold one line of text: drawn like any other, from lines that are laid out
// once.
// Ownership: owns the lines it has drawn lately. Threads: GUI thread.
#pragma once

#include <QFont>
#include <QHash>
#include <QStaticText>
#include <QStyledItemDelegate>

namespace zl::gui {

class PlainDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  // Cells with a tick or the focus, and tables that wrap their lines, are left to the style.
  void paint(QPainter* painter, const QStyleOptionViewItem& option,
             const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  const QStaticText& line(const QString& text, const QFont& font) const;

  mutable QFont font_;  // of the lines, but for their weight
  mutable QHash<QString, QStaticText> plain_, bold_;
};

}  // namespace zl::gui
