#include "gui/plot/scatter_plot.h"

#include <QLineF>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

constexpr double kRadius = 6;

struct ScatterPlot::Frame {
  QRectF box;
  double x_min = 0, x_max = 1, y_min = 0, y_max = 1, line = 0;
  bool logarithmic = false;

  double share(double value, double from, double to) const {
    if (!logarithmic) return (value - from) / (to - from);
    return std::log(std::max(value, from) / from) / std::log(to / from);
  }
  QPointF at(double x, double y) const {
    return {box.left() + share(x, x_min, x_max) * box.width(),
            box.bottom() - share(y, y_min, y_max) * box.height()};
  }
  // At most `most` of them: a step apart, or the 1, 2 and 5 of each power of ten.
  std::vector<double> ticks(double from, double to, int most, Unit unit) const {
    std::vector<double> all;
    if (!logarithmic) {
      return gui::ticks(0, to, tick_step(to, most, unit));
    }
    const bool few = std::log10(to / from) * 3 > most;
    for (double power = std::pow(10, std::floor(std::log10(from))); power > 0 && power <= to;
         power *= 10) {
      for (const double value : {power, 2 * power, 5 * power}) {
        if (value >= from && value <= to && !(few && value > power)) all.push_back(value);
      }
    }
    return all;
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

namespace {

QString label_of(const ScatterPoint& point) {
  return point.feasible ? point.label : QObject::tr("✗ %1").arg(point.label);
}

}  // namespace

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
    frame.y_max = std::max({frame.y_max, point.y, point.high});
  }
  frame.x_max = frame.x_max > 0 ? frame.x_max * 1.12 : 1;
  frame.y_max = frame.y_max > 0 ? frame.y_max * 1.15 : 1;
  if (data_.diagonal) measure_logarithmic(frame);
  const double left = metrics.horizontalAdvance(value_text(frame.y_max, data_.y_unit)) + 12;
  frame.box = area.adjusted(left, frame.line + 6, -12, -2 * frame.line - 8);
  return frame;
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
  frame.logarithmic = true;
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
  for (const double x : frame.ticks(frame.x_min, frame.x_max, columns, data_.x_unit)) {
    const double at = frame.at(x, frame.y_min).x();
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(at, box.top()), QPointF(at, box.bottom()));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(at - 60, box.bottom() + 3, 120, frame.line), Qt::AlignCenter,
                     tick_text(x, data_.x_unit));
  }
  const int rows = std::max(2, static_cast<int>(box.height() / (2.5 * frame.line)));
  for (const double y : frame.ticks(frame.y_min, frame.y_max, rows, data_.y_unit)) {
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
  painter.drawText(QRectF(box.left(), box.bottom() + frame.line + 5, box.width(), frame.line),
                   Qt::AlignRight | Qt::AlignVCenter, data_.x_name);
  painter.drawText(QRectF(box.left() + 4, box.top() - frame.line - 4, box.width(), frame.line),
                   Qt::AlignLeft | Qt::AlignVCenter, data_.y_name);
  if (std::any_of(data_.points.begin(), data_.points.end(),
                  [](const ScatterPoint& point) { return !point.feasible; })) {
    painter.drawText(QRectF(box.left(), box.bottom() + frame.line + 5, box.width(), frame.line),
                     Qt::AlignLeft | Qt::AlignVCenter, tr("hollow, ✗: does not fit"));
  }
  if (!data_.x_limit) return;
  const double at = frame.at(*data_.x_limit, frame.y_min).x();
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
  const double end = frame.at(data_.x_limit.value_or(frame.x_max), 0).x();
  line << QPointF(std::max(end, line.back().x()), line.back().y());
  painter.drawPolyline(line);
}

void ScatterPlot::draw_points(QPainter& painter, const Frame& frame,
                              std::vector<Mark>& marks) const {
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const ScatterPoint& point = data_.points[i];
    const QPointF centre = frame.at(point.x, point.y);
    const QRectF symbol(centre - QPointF(kRadius, kRadius), QSizeF(2 * kRadius, 2 * kRadius));
    QString interval;
    if (point.high > 0) {
      painter.setPen(QPen(series_color(i), 1.5));
      painter.drawLine(frame.at(point.x, point.low), frame.at(point.x, point.high));
      interval =
          tr(", 90 % within %1 and %2")
              .arg(value_text(point.low, data_.y_unit), value_text(point.high, data_.y_unit));
    }
    painter.setPen(point.feasible ? QPen(palette().base().color(), 1)
                                  : QPen(faint(palette()), 1.5));
    painter.setBrush(point.feasible ? QBrush(series_color(i)) : QBrush(palette().base()));
    draw_symbol(painter, centre, kRadius, i);
    marks.push_back({symbol,
                     label_of(point) + ": " + value_text(point.x, data_.x_unit) + " " +
                         data_.x_name + ", " + value_text(point.y, data_.y_unit) + " " +
                         data_.y_name + interval,
                     static_cast<int>(i)});
  }
  draw_labels(painter, frame, marks);
}

namespace {

struct Place {
  QRectF area;
  std::ptrdiff_t hits = std::numeric_limits<std::ptrdiff_t>::max();  // what it would hide
};

// The best place for a label of `size`: beside its symbol, or some lines above or below.
Place find_place(const QRectF& symbol, const QSizeF& size, const QRectF& box,
                 const std::vector<QRectF>& taken) {
  const double right = symbol.right() + 3, left = symbol.left() - 3 - size.width();
  const double above = symbol.top() - size.height(), below = symbol.bottom();
  const double beside = symbol.center().y() - size.height() / 2;
  const double middle = std::clamp(symbol.center().x() - size.width() / 2, box.left() + 2,
                                   std::max(box.left() + 2, box.right() - size.width()));
  // The front goes right and up from a point: below it on the right is the freest place.
  std::vector<QPointF> corners{{right, below - 4}, {left, above + 4}, {right, beside},
                               {left, beside},     {left, below - 4}, {right, above + 4},
                               {middle, above},    {middle, below}};
  for (const double lines : {1.6, -1.6, 2.7, -2.7, 3.8, -3.8}) {
    corners.emplace_back(right + 8, beside + lines * size.height());
    corners.emplace_back(left - 8, beside + lines * size.height());
  }
  Place best;
  for (const QPointF& corner : corners) {
    const QRectF area(corner, size);
    auto hits = 2 * std::count_if(taken.begin(), taken.end(),
                                  [&](const QRectF& other) { return area.intersects(other); });
    if (!box.adjusted(0, 0, 12, 0).contains(area)) ++hits;
    if (area.left() < box.left()) hits += 2;  // over the numbers of the axis
    if (area.right() > box.right() + 12) hits += 4;
    if (hits < best.hits) best = {area, hits};
  }
  return best;
}

}  // namespace

// A label goes where it hides no symbol, no other label and not the capacity, with a line to its
// symbol when that is away; one without such a place is left to the tool tip.
void ScatterPlot::draw_labels(QPainter& painter, const Frame& frame,
                              const std::vector<Mark>& marks) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  std::vector<QRectF> taken;
  for (const Mark& mark : marks) taken.push_back(mark.area);
  if (data_.x_limit) {
    const double limit = frame.at(*data_.x_limit, frame.y_min).x();
    taken.emplace_back(limit - 2, frame.box.top(), 4, frame.box.height());
  }
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const QString text = label_of(data_.points[i]);
    const QRectF& symbol = marks[i].area;
    const QSizeF size(metrics.horizontalAdvance(text) + 2, frame.line);
    const auto [area, hits] = find_place(symbol, size, frame.box, taken);
    if (hits > 1) continue;
    taken.push_back(area);
    const double near_x = area.left() > symbol.right() ? area.left() : area.right();
    const QLineF leader(symbol.center(), QPointF(near_x, area.center().y()));
    if (std::abs(area.center().y() - symbol.center().y()) > 1.5 * size.height()) {
      painter.setPen(faint(palette()));
      painter.drawLine(leader.pointAt(1.5 * kRadius / leader.length()), leader.p2());
    }
    painter.fillRect(area, palette().base());
    painter.setPen(data_.points[i].feasible ? palette().text().color() : faint(palette()));
    painter.drawText(area, Qt::AlignCenter, text);
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
