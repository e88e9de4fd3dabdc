#include "gui/plot/line_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/plot/decimate.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

void LinePlot::set_data(LineData chart) {
  data_ = std::move(chart);
  measure();
  if (cursor_) cursor_ = std::clamp(*cursor_, x_min_, x_max_);
  data_has_changed();
}

bool LinePlot::is_empty() const {
  return std::all_of(data_.curves.begin(), data_.curves.end(),
                     [](const Curve& curve) { return curve.x.empty(); });
}

void LinePlot::measure() {
  x_min_ = y_min_ = INFINITY;
  x_max_ = y_max_ = -INFINITY;
  for (const Curve& curve : data_.curves) {
    if (curve.x.empty()) continue;
    x_min_ = std::min(x_min_, curve.x.front());
    x_max_ = std::max(x_max_, curve.x.back());
    for (const double y : curve.y) {
      if (!std::isfinite(y)) continue;
      y_min_ = std::min(y_min_, y);
      y_max_ = std::max(y_max_, y);
    }
  }
  if (!(x_max_ > x_min_)) x_max_ = x_min_ + 1;
  if (!std::isfinite(x_min_)) x_min_ = 0, x_max_ = 1;
  if (!std::isfinite(y_min_)) y_min_ = 0, y_max_ = 1;
  if (data_.limit && *data_.limit < 3 * y_max_) y_max_ = std::max(y_max_, *data_.limit);
  if (data_.from_zero) y_min_ = std::min(0.0, y_min_);
  const double range = y_max_ > y_min_ ? y_max_ - y_min_ : 1;
  y_max_ = y_min_ + range * 1.06;
  if (!data_.from_zero) y_min_ -= range * 0.06;
}

Table LinePlot::table() const {
  constexpr std::size_t kMost = 5000;  // rows of a curve; longer ones are thinned evenly
  Table table;
  table.columns = {{"curve", Align::left},
                   {data_.x_name.toStdString(), Align::right, data_.x_unit},
                   {data_.y_name.toStdString(), Align::right, data_.y_unit}};
  for (const Curve& curve : data_.curves) {
    const std::size_t stride = std::max<std::size_t>(1, (curve.x.size() + kMost - 1) / kMost);
    for (std::size_t i = 0; i < curve.x.size(); i += stride) {
      table.rows.push_back({curve.name.toStdString(), curve.x[i], curve.y[i]});
    }
  }
  return table;
}

QPointF LinePlot::at(double x, double y) const {
  return {box_.left() + (x - x_min_) / (x_max_ - x_min_) * box_.width(),
          box_.bottom() - (y - y_min_) / (y_max_ - y_min_) * box_.height()};
}

double LinePlot::x_at(double pixel) const {
  if (box_.width() <= 0) return x_min_;
  return std::clamp(x_min_ + (pixel - box_.left()) / box_.width() * (x_max_ - x_min_), x_min_,
                    x_max_);
}

std::size_t LinePlot::style_of(std::size_t curve) const {
  return data_.curves[curve].style.value_or(curve);
}

double LinePlot::value_at(const Curve& curve, double x) {
  if (curve.x.empty() || x < curve.x.front() || x > curve.x.back()) return NAN;
  const auto after = std::upper_bound(curve.x.begin(), curve.x.end(), x);
  const auto last = after == curve.x.begin() ? after : after - 1;
  // Several points share a moment: the highest is what a person sees there.
  const auto first = std::lower_bound(curve.x.begin(), last, *last);
  const auto y = [&](auto x_at) { return curve.y.begin() + (x_at - curve.x.begin()); };
  return *std::max_element(y(first), y(last) + 1);
}

void LinePlot::draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  line_ = metrics.height();
  std::vector<QString> names;
  for (const Curve& curve : data_.curves) {
    const double now = cursor_ ? value_at(curve, *cursor_) : NAN;
    names.push_back(curve.name +
                    (std::isfinite(now) ? ": " + value_text(now, data_.y_unit) : QString()));
  }
  const QRectF below =
      draw_legend(painter, palette(), area, names, [&](std::size_t i, const QRectF& box) {
        painter.setPen(series_pen(style_of(i), 2.5));
        painter.drawLine(QPointF(box.left(), box.center().y()),
                         QPointF(box.right(), box.center().y()));
      });
  const double left = metrics.horizontalAdvance(value_text(y_max_, data_.y_unit)) + 14;
  box_ = below.adjusted(left, line_ + 4, -12, -2 * line_ - 6);
  if (box_.width() < 20 || box_.height() < 20) return;
  draw_axes(painter, area);
  painter.save();
  painter.setClipRect(box_.adjusted(-2, -2, 2, 2), Qt::IntersectClip);
  for (std::size_t i = 0; i < data_.curves.size(); ++i) draw_curve(painter, i);
  painter.restore();
  draw_limit(painter);
  if (cursor_) draw_cursor(painter, marks);
}

void LinePlot::draw_cursor(QPainter& painter, std::vector<Mark>& marks) const {
  painter.setPen(QPen(palette().text().color(), 1, Qt::DashLine));
  const double x = at(*cursor_, 0).x();
  painter.drawLine(QPointF(x, box_.top()), QPointF(x, box_.bottom()));
  painter.setRenderHint(QPainter::Antialiasing);
  for (std::size_t i = 0; i < data_.curves.size(); ++i) {
    const double y = value_at(data_.curves[i], *cursor_);
    if (!std::isfinite(y)) continue;
    const QPointF centre = at(*cursor_, y);
    painter.setPen(QPen(palette().base().color(), 1));
    painter.setBrush(series_color(style_of(i)));
    draw_symbol(painter, centre, 4.5, style_of(i));
    marks.push_back({QRectF(centre - QPointF(5, 5), QSizeF(10, 10)),
                     data_.curves[i].name + ": " + value_text(y, data_.y_unit) + tr(" at ") +
                         value_text(*cursor_, data_.x_unit),
                     static_cast<int>(i)});
  }
}

void LinePlot::draw_axes(QPainter& painter, const QRectF& area) {
  const int rows = std::max(2, static_cast<int>(box_.height() / (2.5 * line_)));
  for (const double y : axis_ticks(y_min_, y_max_, rows, data_.y_unit)) {
    painter.setPen(grid(palette()));
    painter.drawLine(at(x_min_, y), at(x_max_, y));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(box_.left() - 208, at(0, y).y() - line_ / 2, 200, line_),
                     Qt::AlignRight | Qt::AlignVCenter, tick_text(y, data_.y_unit));
  }
  const int columns = std::max(2, static_cast<int>(box_.width() / (5 * line_)));
  for (const double x : axis_ticks(x_min_, x_max_, columns, data_.x_unit)) {
    painter.setPen(grid(palette()));
    painter.drawLine(at(x, y_min_), at(x, y_max_));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(at(x, 0).x() - 60, box_.bottom() + 3, 120, line_), Qt::AlignCenter,
                     tick_text(x, data_.x_unit));
  }
  painter.drawText(
      QRectF(area.left(), box_.bottom() + line_ + 4, box_.right() - area.left(), line_),
      Qt::AlignRight | Qt::AlignVCenter, data_.x_name);
  painter.drawText(QRectF(area.left(), box_.top() - line_ - 3, area.width(), line_),
                   Qt::AlignLeft | Qt::AlignVCenter, data_.y_name);
}

// Over the curves, its name on a plate of its own.
void LinePlot::draw_limit(QPainter& painter) const {
  if (!data_.limit || *data_.limit > y_max_) return;
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double y = at(0, *data_.limit).y();
  painter.setPen(QPen(bad(palette()), 2, Qt::DashLine));
  painter.drawLine(QPointF(box_.left(), y), QPointF(box_.right(), y));
  const double text = metrics.horizontalAdvance(data_.limit_text) + 6;
  const QRectF plate(box_.right() - text, y - line_ - 2, text, line_);
  painter.fillRect(plate, palette().base());
  painter.drawText(plate, Qt::AlignCenter, data_.limit_text);
}

void LinePlot::draw_curve(QPainter& painter, std::size_t index) const {
  const Curve& curve = data_.curves[index];
  const double x_scale = box_.width() / (x_max_ - x_min_);
  const double y_scale = -box_.height() / (y_max_ - y_min_);
  const Scale scale{box_.left() - x_min_ * x_scale, x_scale, box_.bottom() - y_min_ * y_scale,
                    y_scale};
  const QPolygonF line = decimate(curve.x, curve.y, 0, curve.x.size(), scale, data_.steps);
  painter.setRenderHint(QPainter::Antialiasing, line.size() < 2000);
  const double width = is_highlighted(index) ? 2 : 1;  // times
  painter.setPen(series_pen(style_of(index), width * (line.size() < 2000 ? 2 : 1)));
  if (line.size() > 2000) {
    QPen pen = painter.pen();
    pen.setStyle(Qt::SolidLine);
    painter.setPen(pen);
  }
  painter.drawPolyline(line);
  if (line.size() == 1) painter.drawEllipse(line.front(), 2.5, 2.5);
}

void LinePlot::set_cursor(double x) {
  cursor_ = std::clamp(x, x_min_, x_max_);
  update();
  Q_EMIT cursor_moved(*cursor_);
}

void LinePlot::set_cursor_to_peak() {
  const Curve* best = nullptr;
  std::size_t at = 0;
  for (const Curve& curve : data_.curves) {
    const auto peak = std::max_element(curve.y.begin(), curve.y.end());
    if (peak == curve.y.end() || (best && *peak <= best->y[at])) continue;
    best = &curve;
    at = static_cast<std::size_t>(peak - curve.y.begin());
  }
  if (best) set_cursor(best->x[at]);
}

void LinePlot::keyPressEvent(QKeyEvent* event) {
  const double step = (x_max_ - x_min_) / (event->modifiers() & Qt::ShiftModifier ? 20 : 200);
  if (event->key() == Qt::Key_Right) return set_cursor(cursor_.value_or(x_min_) + step);
  if (event->key() == Qt::Key_Left) return set_cursor(cursor_.value_or(x_max_) - step);
  if (event->key() == Qt::Key_P) return set_cursor_to_peak();
  Plot::keyPressEvent(event);
}

void LinePlot::mousePressEvent(QMouseEvent* event) { set_cursor(x_at(event->position().x())); }

void LinePlot::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons() & Qt::LeftButton) set_cursor(x_at(event->position().x()));
}

}  // namespace zl::gui
