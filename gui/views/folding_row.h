// A pane of fixed width beside what takes the rest; above it where there is no room for both.
// Ownership: owns the two. Threads: GUI thread.
#pragma once

#include <QSplitter>
#include <QWidget>

class QBoxLayout;

namespace zl::gui {

class FoldingRow : public QWidget {
  Q_OBJECT

 public:
  // width: of `pane` where it stands beside.
  FoldingRow(QWidget* pane, int width, QWidget* wide, QWidget* parent = nullptr);

  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void fold();

  QWidget *pane_, *wide_;
  int width_;
  QBoxLayout* layout_;
};

// Its widgets side by side; one above the other where they would be narrow.
class FoldingSplitter : public QSplitter {
  Q_OBJECT

 public:
  explicit FoldingSplitter(QWidget* parent = nullptr) : QSplitter(Qt::Horizontal, parent) {}

  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
};

}  // namespace zl::gui
