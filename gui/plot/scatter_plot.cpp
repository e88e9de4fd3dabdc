#include "gui/plot/scatter_plot.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/plot/scatter_frame.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

// Times what fits: beyond, an axis that has room for both shows neither.
constexpr double kFarAway = 4;

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
  frame.x_max = limit_is_far() ? 0 : data_.x_limit.value_or(0);
  frame.y_max = 0;
  for (const ScatterPoint& point : data_.points) {
    frame.x_max = std::max(frame.x_max, point.x);
    frame.y_max = std::max({frame.y_max, point.y, point.high});
  }
  frame.x_max = frame.x_max > 0 ? frame.x_max * 1.12 : 1;
  frame.y_max = frame.y_max > 0 ? frame.y_max * 1.15 : 1;
  if (data_.diagonal) {
    measure_logarithmic(frame);
  } else if (has_giant()) {
    frame.x_log = true;
    frame.x_min = frame.x_max;
    for (const ScatterPoint& point : data_.points) {
      if (point.x > 0) frame.x_min = std::min(frame.x_min, point.x / 1.3);
    }
  }
  const double left = metrics.horizontalAdvance(value_text(frame.y_max, data_.y_unit)) + 12;
  frame.box = area.adjusted(left, frame.line + 6, -12, -2 * frame.line - 8);
  return frame;
}

bool ScatterPlot::limit_is_far() const {
  double most = 0;
  for (const ScatterPoint& point : data_.points) most = std::max(most, point.x);
  return data_.x_limit && *data_.x_limit > kFarAway * most;
}

// Something that does not fit is so large that what fits would share one corner.
bool ScatterPlot::has_giant() const {
  double most = 0, fitting = 0;
  for (const ScatterPoint& point : data_.points) {
    most = std::max(most, point.x);
    if (point.feasible) fitting = std::max(fitting, point.x);
  }
  if (!limit_is_far()) fitting = std::max(fitting, data_.x_limit.value_or(0));
  return fitting > 0 && most > kFarAway * fitting;
}

std::size_t ScatterPlot::style_of(std::size_t point) const {
  return data_.points[point].style.value_or(point);
}

// Both axes alike, so that the diagonal joins the corners; milliseconds and minutes in one chart.
void ScatterPlot::measure_logarithmic(Frame& frame) const {
  double least = std::max(frame.x_max, frame.y_max);
  const double most = least;
  for (const ScatterPoint& point : data_.points) {
    for (const double value : {point.x, point.y, point.low}) {
      if (value > 0) least = std::min(least, value);
    }
  }
  frame.x_log = frame.y_log = true;
  frame.x_min = frame.y_min = least / 1.5;
  frame.x_max = frame.y_max = most * 1.3;
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
  const int columns = std::max(2, static_cast<int>(box.width() / (5 * frame.line)));
  for (const double x :
       Frame::ticks(frame.x_min, frame.x_max, columns, data_.x_unit, frame.x_log)) {
    const double at = frame.at(x, frame.y_min).x();
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(at - 60, box.bottom() + 3, 120, frame.line), Qt::AlignCenter,
                     tick_text(x, data_.x_unit));
  }
  const int rows = std::max(2, static_cast<int>(box.height() / (2.5 * frame.line)));
  for (const double y : Frame::ticks(frame.y_min, frame.y_max, rows, data_.y_unit, frame.y_log)) {
    const double at = frame.at(frame.x_min, y).y();
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(box.left(), at), QPointF(box.right(), at));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(box.left() - 208, at - frame.line / 2, 200, frame.line),
                     Qt::AlignRight | Qt::AlignVCenter, tick_text(y, data_.y_unit));
  }
  draw_names(painter, frame);
}

void ScatterPlot::draw_names(QPainter& painter, const Frame& frame) const {
  const QRectF& box = frame.box;
  const QRectF below(box.left(), box.bottom() + frame.line + 5, box.width(), frame.line);
  const auto [axis, hollow] = scatter_captions(data_.x_name, frame.x_log, box.width(),
                                               QFontMetricsF(painter.font(), painter.device()));
  painter.drawText(below, Qt::AlignRight | Qt::AlignVCenter, axis);
  painter.drawText(QRectF(box.left() + 4, box.top() - frame.line - 4, box.width(), frame.line),
                   Qt::AlignLeft | Qt::AlignVCenter, data_.y_name);
  if (std::any_of(data_.points.begin(), data_.points.end(),
                  [](const ScatterPoint& point) { return !point.feasible; })) {
    painter.drawText(below, Qt::AlignLeft | Qt::AlignVCenter, hollow);
  }
  if (data_.x_limit) draw_limit(painter, frame);
}

// A limit far beyond the axis is named at its end.
void ScatterPlot::draw_limit(QPainter& painter, const Frame& frame) const {
  const QRectF& box = frame.box;
  const bool beyond = limit_is_far();
  const double at = beyond ? box.right() : frame.at(*data_.x_limit, frame.y_min).x();
  painter.setPen(QPen(bad(palette()), 2, Qt::DashLine));
  if (!beyond) painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()));
  // Left of the line, unless the name of the axis is there.
  const QFontMetricsF metrics(painter.font(), painter.device());
  const QString name = beyond ? data_.limit_text + " \u2192" : data_.limit_text;
  const double text = metrics.horizontalAdvance(name) + 2;
  const double taken = frame.box.left() + metrics.horizontalAdvance(data_.y_name) + 16;
  const double left = at - text > taken ? at - text : std::max(taken, at - text / 2);
  painter.drawText(QRectF(left, box.top() - frame.line - 4, text, frame.line),
                   Qt::AlignLeft | Qt::AlignVCenter, name);
}

void ScatterPlot::draw_front(QPainter& painter, const Frame& frame) const {
  painter.setPen(QPen(faint(palette()), 1.5));
  if (data_.diagonal) {
    painter.drawLine(frame.box.bottomLeft(), frame.box.topRight());
    return;
  }
  QPolygonF line;
  for (const std::size_t i : pareto_front(data_.points)) {
    const QPointF next = frame.at(data_.points[i].x, data_.points[i].y);
    if (!line.isEmpty()) line << QPointF(next.x(), line.back().y());
    line << next;
  }
  if (line.isEmpty()) return;
  // Nothing fits behind the capacity.
  const double last = limit_is_far() ? frame.x_max : data_.x_limit.value_or(frame.x_max);
  const double end = frame.at(last, 0).x();
  line << QPointF(std::max(end, line.back().x()), line.back().y());
  painter.drawPolyline(line);
}

void ScatterPlot::draw_points(QPainter& painter, const Frame& frame,
                              std::vector<Mark>& marks) const {
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const ScatterPoint& point = data_.points[i];
    const QPointF centre = frame.at(point.x, point.y);
    const QRectF symbol(centre - QPointF(kSymbolRadius, kSymbolRadius),
                        QSizeF(2 * kSymbolRadius, 2 * kSymbolRadius));
    QString interval;
    if (point.high > 0) {
      painter.setPen(QPen(series_color(style_of(i)), 1.5));
      painter.drawLine(frame.at(point.x, point.low), frame.at(point.x, point.high));
      interval =
          tr(", 90 % within %1 and %2")
              .arg(value_text(point.low, data_.y_unit), value_text(point.high, data_.y_unit));
    }
    painter.setPen(point.feasible ? QPen(palette().base().color(), 1)
                                  : QPen(faint(palette()), 1.5));
    painter.setBrush(point.feasible ? QBrush(series_color(style_of(i))) : QBrush(palette().base()));
    draw_symbol(painter, centre, kSymbolRadius, style_of(i));
    if (is_highlighted(i)) {
      painter.setPen(QPen(palette().highlight().color(), 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawEllipse(centre, kSymbolRadius + 5, kSymbolRadius + 5);
    }
    marks.push_back({symbol,
                     label_of(point) + ": " + value_text(point.x, data_.x_unit) + " " +
                         data_.x_name + ", " + value_text(point.y, data_.y_unit) + " " +
                         data_.y_name + interval,
                     static_cast<int>(i)});
  }
  draw_labels(painter, frame, marks);
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
