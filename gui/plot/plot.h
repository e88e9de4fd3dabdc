// The base of every chart: paints itself on any paint device, names what is under the pointer, and
// can be walked with the arrow keys.
// Ownership: a widget. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <functional>
#include <vector>

#include "results/format.h"

class QFontMetricsF;
class QPainter;

namespace zl::gui {

// Something in the chart that can be pointed at.
struct Mark {
  QRectF area;
  QString text;  // tool tip and what a screen reader says
  int row = -1;  // of the chart's data
};

inline constexpr int kMargin = 8;  // pixels around every chart

class Plot : public QWidget {
  Q_OBJECT

 public:
  explicit Plot(const QString& title, QWidget* parent = nullptr);

  const QString& title() const { return title_; }
  // What to do when there is nothing to draw.
  void set_empty_text(const QString& text) { empty_text_ = text; }
  // What is drawn, as numbers: for "show as table", CSV and tests.
  virtual Table table() const = 0;
  // What it is of, "llama3-8b on 8xh100, ...": exported pictures say it.
  const QString& context() const { return context_; }
  void set_context(const QString& context) { context_ = context; }
  // Dimmed: it shows a scenario that is no longer the one in the form.
  void set_stale(bool stale);
  bool stale() const { return stale_; }
  // Paints the chart into a rectangle of any device, marks aside.
  void render_into(QPainter& painter, const QRectF& area);

  const std::vector<Mark>& marks() const { return marks_; }
  int current() const { return current_; }  // index of a mark, or -1
  void set_current(int mark);

  // Rows of the data that people point at elsewhere.
  virtual void set_highlighted(const std::vector<int>& rows);

  QSize minimumSizeHint() const override { return {240, 180}; }
  QSize sizeHint() const override { return {520, 300}; }

 Q_SIGNALS:
  void activated(int row);  // Enter or double click
  void clicked(int row);
  void data_changed();

 protected:
  // Fills `marks` with what can be pointed at, in the order of the arrow keys. What only explains
  // itself under the pointer, names and legends, goes to explain().
  virtual void draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) = 0;
  virtual bool is_empty() const = 0;
  void data_has_changed();  // repaints and forgets the current mark

  void paintEvent(QPaintEvent*) override;
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  int mark_at(const QPointF& position) const;
  bool is_highlighted(std::size_t row) const;
  void explain(const QRectF& area, const QString& text);

 private:
  QString title_, empty_text_, context_;
  bool stale_ = false;
  std::vector<Mark> marks_, explanations_;
  std::vector<int> highlighted_;
  int current_ = -1;
};

// The legend of `names` from the top of `area`, in as many lines as needed; returns what is left.
// `symbol` paints entry i into a small rectangle; `places` gets where each entry is.
QRectF draw_legend(QPainter& painter, const QPalette& palette, const QRectF& area,
                   const std::vector<QString>& names,
                   const std::function<void(std::size_t, const QRectF&)>& symbol,
                   std::vector<QRectF>* places = nullptr);
// How many lines that takes.
int legend_lines(const QFontMetricsF& metrics, const std::vector<QString>& names, double width);

}  // namespace zl::gui
