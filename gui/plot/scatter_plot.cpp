#include "gui/plot/scatter_plot.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <numeric>

#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

constexpr double kRadius = 6;

struct ScatterPlot::Frame {
  QRectF box;
  double x_max = 1, y_max = 1, line = 0;

  QPointF at(double x, double y) const {
    return {box.left() + x / x_max * box.width(), box.bottom() - y / y_max * box.height()};
  }
};

std::vector<std::size_t> pareto_front(const std::vector<ScatterPoint>& points) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].feasible) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return points[a].x != points[b].x ? points[a].x < points[b].x : points[a].y > points[b].y;
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || points[i].y > points[front.back()].y) front.push_back(i);
  }
  return front;
}

void ScatterPlot::set_data(ScatterData chart) {
  data_ = std::move(chart);
  data_has_changed();
}

Table ScatterPlot::table() const {
  Table table;
  table.columns = {{"strategy", Align::left},
                   {data_.x_name.toStdString(), Align::right, data_.x_unit},
                   {data_.y_name.toStdString(), Align::right, data_.y_unit},
                   {"fits", Align::left},
                   {"Pareto front", Align::left}};
  const auto front = pareto_front(data_.points);
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const ScatterPoint& point = data_.points[i];
    const bool on_front = std::find(front.begin(), front.end(), i) != front.end();
    table.rows.push_back({point.label.toStdString(), point.x, point.y,
                          std::string(point.feasible ? "yes" : "no"),
                          std::string(on_front ? "yes" : "no")});
  }
  return table;
}

ScatterPlot::Frame ScatterPlot::frame(const QRectF& area, const QFontMetricsF& metrics) const {
  Frame frame;
  frame.line = metrics.height();
  frame.x_max = data_.x_limit.value_or(0);
  frame.y_max = 0;
  for (const ScatterPoint& point : data_.points) {
    frame.x_max = std::max(frame.x_max, point.x);
    frame.y_max = std::max(frame.y_max, point.y);
  }
  frame.x_max = frame.x_max > 0 ? frame.x_max * 1.12 : 1;
  frame.y_max = frame.y_max > 0 ? frame.y_max * 1.15 : 1;
  const double left = metrics.horizontalAdvance(value_text(frame.y_max, data_.y_unit)) + 12;
  frame.box = area.adjusted(left, frame.line + 6, -12, -2 * frame.line - 8);
  return frame;
}

void ScatterPlot::draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) {
  const Frame frame = this->frame(area, QFontMetricsF(painter.font(), painter.device()));
  draw_axes(painter, frame);
  painter.setRenderHint(QPainter::Antialiasing);
  draw_front(painter, frame);
  draw_points(painter, frame, marks);
}

void ScatterPlot::draw_axes(QPainter& painter, const Frame& frame) const {
  const QRectF& box = frame.box;
  const double x_step = tick_step(
      frame.x_max, std::max(2, static_cast<int>(box.width() / (5 * frame.line))), data_.x_unit);
  for (double x = 0; x <= frame.x_max; x += x_step) {
    const double at = frame.at(x, 0).x();
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(at - 60, box.bottom() + 3, 120, frame.line), Qt::AlignCenter,
                     tick_text(x, data_.x_unit));
  }
  const double y_step = tick_step(
      frame.y_max, std::max(2, static_cast<int>(box.height() / (2.5 * frame.line))), data_.y_unit);
  for (double y = 0; y <= frame.y_max; y += y_step) {
    const double at = frame.at(0, y).y();
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(box.left(), at), QPointF(box.right(), at));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(box.left() - 208, at - frame.line / 2, 200, frame.line),
                     Qt::AlignRight | Qt::AlignVCenter, tick_text(y, data_.y_unit));
  }
  painter.drawText(QRectF(box.left(), box.bottom() + frame.line + 5, box.width(), frame.line),
                   Qt::AlignRight | Qt::AlignVCenter, data_.x_name);
  painter.drawText(QRectF(box.left() + 4, box.top() - frame.line - 4, box.width(), frame.line),
                   Qt::AlignLeft | Qt::AlignVCenter, data_.y_name);
  if (!data_.x_limit) return;
  const double at = frame.at(*data_.x_limit, 0).x();
  painter.setPen(QPen(bad(palette()), 2, Qt::DashLine));
  painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()));
  // Left of the line, unless the name of the axis is there.
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double text = metrics.horizontalAdvance(data_.limit_text) + 2;
  const double taken = frame.box.left() + metrics.horizontalAdvance(data_.y_name) + 16;
  const double left = at - text > taken ? at - text : std::max(taken, at - text / 2);
  painter.drawText(QRectF(left, box.top() - frame.line - 4, text, frame.line),
                   Qt::AlignLeft | Qt::AlignVCenter, data_.limit_text);
}

void ScatterPlot::draw_front(QPainter& painter, const Frame& frame) const {
  if (data_.diagonal) {
    const double end = std::min(frame.x_max, frame.y_max);
    painter.setPen(QPen(faint(palette()), 1.5));
    painter.drawLine(frame.at(0, 0), frame.at(end, end));
    return;
  }
  QPolygonF line;
  for (const std::size_t i : pareto_front(data_.points)) {
    const QPointF next = frame.at(data_.points[i].x, data_.points[i].y);
    if (!line.isEmpty()) line << QPointF(next.x(), line.back().y());
    line << next;
  }
  if (line.isEmpty()) return;
  line << QPointF(frame.box.right(), line.back().y());
  painter.setPen(QPen(faint(palette()), 1.5));
  painter.drawPolyline(line);
}

void ScatterPlot::draw_points(QPainter& painter, const Frame& frame,
                              std::vector<Mark>& marks) const {
  draw_labels(painter, frame);
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const ScatterPoint& point = data_.points[i];
    const QPointF centre = frame.at(point.x, point.y);
    const QRectF symbol(centre - QPointF(kRadius, kRadius), QSizeF(2 * kRadius, 2 * kRadius));
    if (point.feasible) {
      painter.setPen(QPen(palette().base().color(), 1));
      painter.setBrush(series_color(i));
      draw_symbol(painter, centre, kRadius, i);
    } else {
      painter.setPen(QPen(bad(palette()), 2.5));
      painter.drawLine(symbol.topLeft(), symbol.bottomRight());
      painter.drawLine(symbol.topRight(), symbol.bottomLeft());
    }
    marks.push_back({symbol,
                     point.label + ": " + value_text(point.x, data_.x_unit) + " " + data_.x_name +
                         ", " + value_text(point.y, data_.y_unit) + " " + data_.y_name +
                         (point.feasible ? "" : tr(" (does not fit)")),
                     static_cast<int>(i)});
  }
}

// A label goes right of its symbol, or left where there is no room, and below others.
void ScatterPlot::draw_labels(QPainter& painter, const Frame& frame) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  std::vector<QRectF> taken;
  for (const ScatterPoint& point : data_.points) {
    const QPointF centre = frame.at(point.x, point.y);
    const double text = metrics.horizontalAdvance(point.label) + 2, gap = kRadius + 4;
    const bool left = centre.x() + gap + text > frame.box.right() + 10;
    QRectF label(left ? centre.x() - gap - text : centre.x() + gap, centre.y() - frame.line / 2,
                 text, frame.line);
    for (const QRectF& other : taken) {
      if (label.intersects(other)) label.moveTop(other.bottom());
    }
    taken.push_back(label);
    painter.fillRect(label, palette().base());
    painter.setPen(point.feasible ? palette().text().color() : bad(palette()));
    painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, point.label);
  }
}

void ScatterPlot::paintEvent(QPaintEvent* event) {
  Plot::paintEvent(event);
  if (rubber_.isEmpty()) return;
  QPainter painter(this);
  QColor fill = palette().highlight().color();
  painter.setPen(fill);
  fill.setAlpha(50);
  painter.setBrush(fill);
  painter.drawRect(rubber_);
}

void ScatterPlot::mousePressEvent(QMouseEvent* event) {
  if (mark_at(event->position()) < 0) drag_from_ = event->position();
  Plot::mousePressEvent(event);
}

void ScatterPlot::mouseMoveEvent(QMouseEvent* event) {
  if (!drag_from_) return;
  rubber_ = QRectF(*drag_from_, event->position()).normalized();
  update();
}

void ScatterPlot::mouseReleaseEvent(QMouseEvent*) {
  if (!drag_from_) return;
  drag_from_.reset();
  std::vector<int> rows;
  for (const Mark& mark : marks()) {
    if (rubber_.contains(mark.area.center())) rows.push_back(mark.row);
  }
  rubber_ = {};
  update();
  Q_EMIT rows_selected(rows);
}

}  // namespace zl::gui
