// Throughput against memory: one symbol per strategy, the Pareto front of those that fit, the
// capacity. Or predictions against measurements, both logarithmic.
// Ownership: owns a copy of its data. Threads: GUI thread.
#pragma once

#include <optional>

#include "gui/plot/plot.h"

namespace zl::gui {

struct ScatterPoint {
  QString label;
  double x = 0, y = 0;
  bool feasible = true;                   // infeasible points are hollow and never on the front
  double low = 0, high = 0;               // error bar of y; 0: none
  std::optional<std::size_t> style = {};  // colour and symbol; none: its place
};

struct ScatterData {
  QString x_name, y_name;
  Unit x_unit = Unit::none, y_unit = Unit::none;
  std::vector<ScatterPoint> points;
  std::optional<double> x_limit;
  QString limit_text;
  // x = y in place of the Pareto front, on logarithmic axes: prediction against measurement.
  bool diagonal = false;
};

// What stands under the axis: its name on the right, what a hollow symbol means on the left, as
// long as `width` holds both beside each other; "": there is no room for that.
struct ScatterCaptions {
  QString axis, hollow;
};
ScatterCaptions scatter_captions(const QString& axis, bool logarithmic, double width,
                                 const QFontMetricsF& metrics);

// Indices of the feasible points that no other beats with less x and more y, by rising x.
std::vector<std::size_t> pareto_front(const std::vector<ScatterPoint>& points);

class ScatterPlot : public Plot {
  Q_OBJECT

 public:
  using Plot::Plot;

  void set_data(ScatterData chart);
  Table table() const override;

 Q_SIGNALS:
  // Rows inside a rectangle drawn with the mouse.
  void rows_selected(const std::vector<int>& rows);

 protected:
  void draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) override;
  bool is_empty() const override { return data_.points.empty(); }
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  struct Frame;
  Frame frame(const QRectF& area, const QFontMetricsF& metrics) const;
  void measure_logarithmic(Frame& frame) const;
  bool limit_is_far() const;
  bool has_giant() const;
  std::size_t style_of(std::size_t point) const;
  void draw_names(QPainter& painter, const Frame& frame) const;
  void draw_limit(QPainter& painter, const Frame& frame) const;
  void draw_axes(QPainter& painter, const Frame& frame) const;
  void draw_front(QPainter& painter, const Frame& frame) const;
  void draw_labels(QPainter& painter, const Frame& frame, const std::vector<Mark>& marks) const;
  void draw_points(QPainter& painter, const Frame& frame, std::vector<Mark>& marks) const;

  ScatterData data_;
  std::optional<QPointF> drag_from_;
  QRectF rubber_;
};

}  // namespace zl::gui
