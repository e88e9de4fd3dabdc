// Curves over one x axis: memory over time of several runs, loss curves. Painted with one minimum
// and maximum per pixel column, so a hundred thousand points cost no more than the pixels.
// Ownership: owns a copy of its data. Threads: GUI thread.
#pragma once

#include <optional>

#include "gui/plot/plot.h"

namespace zl::gui {

struct Curve {
  QString name;
  std::vector<double> x,
      y;  // x never decreases; there is nothing before the first and after the last
  std::optional<std::size_t> style = {};  // of colour, dashes and symbol; none: its place
};

struct LineData {
  QString x_name, y_name;
  Unit x_unit = Unit::none, y_unit = Unit::none;
  std::vector<Curve> curves;
  bool steps = false;     // y holds until the next x
  bool from_zero = true;  // the y axis includes 0
  std::optional<double> limit;
  QString limit_text;
};

class LinePlot : public Plot {
  Q_OBJECT

 public:
  using Plot::Plot;

  void set_data(LineData chart);
  const LineData& data() const { return data_; }
  Table table() const override;

  // The vertical line that a click sets and Left and Right move; its nearest curve point.
  std::optional<double> cursor() const { return cursor_; }
  void set_cursor(double x);
  void set_cursor_to_peak();
  double x_at(double pixel) const;

 Q_SIGNALS:
  void cursor_moved(double x);

 protected:
  void draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) override;
  bool is_empty() const override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  void measure();
  void draw_axes(QPainter& painter, const QRectF& area);
  void draw_limit(QPainter& painter) const;
  void draw_curve(QPainter& painter, std::size_t index) const;
  void draw_cursor(QPainter& painter, std::vector<Mark>& marks) const;
  QPointF at(double x, double y) const;
  static double value_at(const Curve& curve, double x);  // NaN: the curve is not there
  std::size_t style_of(std::size_t curve) const;

  LineData data_;
  std::optional<double> cursor_;
  QRectF box_;  // of the last painting
  double x_min_ = 0, x_max_ = 1, y_min_ = 0, y_max_ = 1, line_ = 0;
};

}  // namespace zl::gui
