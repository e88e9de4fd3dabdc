// Parallel coordinates: one line per run across one axis per quantity; a range dragged on an axis
// keeps the lines that pass through it.
// Ownership: owns a copy of its data. Threads: GUI thread.
#pragma once

#include <QPixmap>
#include <map>
#include <optional>
#include <utility>

#include "gui/plot/plot.h"

namespace zl::gui {

struct ParallelAxis {
  QString name;
  Unit unit = Unit::none;
  // With categories a value is an index into them; without, a number.
  std::vector<QString> categories = {};
  std::optional<double> limit = {};  // marked: a capacity
};

struct ParallelLine {
  QString label;
  std::vector<double> values;  // one per axis; NaN: the line skips the axis
  bool feasible = true;        // others are drawn in the colour of errors
};

struct ParallelData {
  std::vector<ParallelAxis> axes;
  std::vector<ParallelLine> lines;
};

class ParallelPlot : public Plot {
  Q_OBJECT

 public:
  using Range = std::pair<double, double>;  // in the values of the axis

  using Plot::Plot;
  QSize minimumSizeHint() const override;

  void set_data(ParallelData chart);
  Table table() const override;

  // Keeps the lines whose value lies in the range; nullopt takes the axis' range away.
  void brush(int axis, std::optional<Range> range);
  // Indices of the lines that pass every range.
  std::vector<int> kept() const;
  // What is written on an axis of numbers: the least and the largest, or the one that all are.
  const std::vector<double>& numbers(std::size_t axis) const { return numbers_[axis]; }
  // Where the axes are too close for their names, what stands over and under every second one is a
  // row further out.
  bool is_staggered() const { return is_staggered(box_); }
  // Lines to draw on top; a line without a colour of its own otherwise.
  void set_highlighted(const std::vector<int>& lines) override;

 Q_SIGNALS:
  void brushed(const std::vector<int>& lines);

 protected:
  void draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) override;
  bool is_empty() const override { return data_.lines.empty(); }
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Drag {
    int axis = -1;
    double from = 0, to = 0;  // pixels
  };

  double x_of(std::size_t axis, const QRectF& box) const;
  double y_of(std::size_t axis, double value, const QRectF& box) const;
  // An axis whose largest value is ten times its smallest is logarithmic.
  bool is_logarithmic(std::size_t axis) const;
  double value_at(std::size_t axis, double y, const QRectF& box) const;
  QPolygonF path(std::size_t line, const QRectF& box) const;
  QString text_of(std::size_t axis, double value) const;
  void draw_lines(QPainter& painter, const QRectF& box) const;
  std::vector<Mark> make_marks(const QRectF& box) const;
  double spacing(const QRectF& box) const;  // pixels from axis to axis
  QString caption(std::size_t axis) const;
  bool is_staggered(const QRectF& box) const;
  void draw_axis(QPainter& painter, std::size_t axis, const QRectF& box) const;
  void draw_captions(QPainter& painter, std::size_t axis, const QRectF& box) const;
  void draw_categories(QPainter& painter, std::size_t axis, const QRectF& box) const;
  void draw_limit(QPainter& painter, std::size_t axis, const QRectF& box) const;
  void draw_range(QPainter& painter, std::size_t axis, const QRectF& box) const;
  // Where the text of an axis stands: centred at `x`, `room` wide at most.
  struct AxisPlace {
    double x = 0, room = 0;
    bool framed = false;  // on the background of the chart
    QRectF box;
  };
  AxisPlace outside(std::size_t axis, const QRectF& box) const;
  AxisPlace inside(std::size_t axis, const QRectF& box) const;
  void put(QPainter& painter, const AxisPlace& place, double y, const QString& whole,
           const QColor& color) const;
  int axis_at(double x) const;

  ParallelData data_;
  std::vector<Range> limits_;  // of each axis
  std::vector<std::vector<double>> numbers_;
  std::map<int, Range> ranges_;
  std::vector<int> highlighted_;
  std::optional<Drag> drag_;
  QRectF box_;  // where the axes were last drawn
  bool on_screen_ = false;
  // The lines and their marks on screen, until data, ranges or size change.
  QPixmap cached_;
  std::vector<Mark> cached_marks_;
};

}  // namespace zl::gui
