// How parallel coordinates are painted.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/plot/parallel_plot.h"
#include "gui/theme.h"

namespace zl::gui {
namespace {

// A number loses digits after its point before it loses its unit.
QString fitting_text(const QFontMetricsF& metrics, QString text, double room) {
  const qsizetype point = text.indexOf('.');
  const qsizetype space = text.indexOf(' ', point);
  const qsizetype end = space < 0 ? text.size() : space;
  bool is_number = false;
  const double number = text.left(end).toDouble(&is_number);
  const QString unit = text.mid(end);
  for (auto digits = end - point - 2; digits >= 0; --digits) {
    if (point < 0 || !is_number || metrics.horizontalAdvance(text) <= room) break;
    text = QString::number(number, 'f', static_cast<int>(digits)) + unit;
  }
  return metrics.elidedText(text, Qt::ElideRight, room);
}

}  // namespace

void ParallelPlot::draw_lines(QPainter& painter, const QRectF& box) const {
  constexpr std::size_t kMany = 200;  // their smoothing costs a brush its frame
  painter.setRenderHint(QPainter::Antialiasing, data_.lines.size() <= kMany);
  std::vector<bool> keep(data_.lines.size(), false);
  for (const int line : kept()) keep[line] = true;
  // What was brushed away lies below, then what does not fit.
  const auto layer = [&](std::size_t i) { return !keep[i] ? 0 : data_.lines[i].feasible ? 2 : 1; };
  for (int now = 0; now <= 2; ++now) {
    QColor color = now == 0 ? grid(palette()) : now == 1 ? bad(palette()) : series_color(0);
    if (now > 0 && data_.lines.size() > 20) color.setAlphaF(0.55F);
    // Wider pens are stroked as shapes, which takes seconds for hundreds of lines.
    QPen pen(color, 1, now == 1 ? Qt::DashLine : Qt::SolidLine);
    pen.setCosmetic(true);
    painter.setPen(pen);
    for (std::size_t i = 0; i < data_.lines.size(); ++i) {
      if (layer(i) == now) painter.drawPolyline(path(i, box));
    }
  }
}

// Centred; the outer texts stay inside the chart.
void ParallelPlot::put(QPainter& painter, const AxisPlace& place, double y, const QString& whole,
                       const QColor& color) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const QString text = fitting_text(metrics, whole, place.room);
  const double width = metrics.horizontalAdvance(text) + 4;
  const double left = std::clamp(place.x - width / 2, place.box.left() - 36,
                                 std::max(place.box.left(), place.box.right() + 36 - width));
  const QRectF area(left, y, width, metrics.height());
  if (place.framed) painter.fillRect(area, palette().base());
  painter.setPen(color);
  painter.drawText(area, Qt::AlignCenter, text);
}

// Over and under the axis.
ParallelPlot::AxisPlace ParallelPlot::outside(std::size_t axis, const QRectF& box) const {
  const double apart = spacing(box);
  return {x_of(axis, box), (is_staggered(box) ? 2 * apart : apart) - 3, false, box};
}

// On the axis.
ParallelPlot::AxisPlace ParallelPlot::inside(std::size_t axis, const QRectF& box) const {
  const auto has_categories = [&](std::size_t i) {
    return i < data_.axes.size() && !data_.axes[i].categories.empty();
  };
  const bool alone = !has_categories(axis - 1) && !has_categories(axis + 1);
  const double apart = spacing(box);
  return {x_of(axis, box), alone ? 2 * apart - 16 : apart - 3, true, box};
}

void ParallelPlot::draw_captions(QPainter& painter, std::size_t axis, const QRectF& box) const {
  const double line = QFontMetricsF(painter.font(), painter.device()).height();
  const double out = is_staggered(box) && axis % 2 == 0 ? 1 : 0;  // rows further
  const AxisPlace beyond = outside(axis, box);
  put(painter, beyond, box.top() - (2 + 2 * out) * line - 4, caption(axis),
      palette().text().color());
  const std::vector<double>& numbers = numbers_[axis];
  if (numbers.size() == 1) {
    put(painter, inside(axis, box), y_of(axis, numbers[0], box) - line / 2,
        text_of(axis, numbers[0]), faint(palette()));
  } else if (!numbers.empty()) {
    put(painter, beyond, box.top() - (1 + 2 * out) * line - 2, text_of(axis, numbers.back()),
        faint(palette()));
    put(painter, beyond, box.bottom() + 2 + out * line, text_of(axis, numbers.front()),
        faint(palette()));
  }
}

void ParallelPlot::draw_categories(QPainter& painter, std::size_t axis, const QRectF& box) const {
  const double line = QFontMetricsF(painter.font(), painter.device()).height();
  const auto& categories = data_.axes[axis].categories;
  const double room = box.height() / std::max(1.0, static_cast<double>(categories.size()));
  for (std::size_t i = 0; room >= line && i < categories.size(); ++i) {
    put(painter, inside(axis, box), y_of(axis, static_cast<double>(i), box) - line / 2,
        categories[i], palette().text().color());
  }
}

void ParallelPlot::draw_limit(QPainter& painter, std::size_t axis, const QRectF& box) const {
  const std::optional<double>& limit = data_.axes[axis].limit;
  if (!limit || *limit <= limits_[axis].first || *limit >= limits_[axis].second) return;
  const double line = QFontMetricsF(painter.font(), painter.device()).height();
  const double x = x_of(axis, box), y = y_of(axis, *limit, box);
  painter.setPen(QPen(bad(palette()), 2));
  painter.drawLine(QPointF(x - 10, y), QPointF(x + 10, y));
  put(painter, inside(axis, box), y - line - 1, tr("capacity"), bad(palette()));
}

void ParallelPlot::draw_range(QPainter& painter, std::size_t axis, const QRectF& box) const {
  const auto range = ranges_.find(static_cast<int>(axis));
  if (range == ranges_.end()) return;
  const double top = y_of(axis, range->second.second, box);
  const double bottom = y_of(axis, range->second.first, box);
  QColor fill = palette().highlight().color();
  painter.setPen(fill);
  fill.setAlpha(70);
  painter.setBrush(fill);
  painter.drawRect(QRectF(x_of(axis, box) - 7, top, 14, bottom - top));
  painter.setBrush(Qt::NoBrush);
}

void ParallelPlot::draw_axis(QPainter& painter, std::size_t axis, const QRectF& box) const {
  const double x = x_of(axis, box);
  painter.setPen(QPen(palette().text().color(), 1));
  painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()));
  draw_captions(painter, axis, box);
  draw_categories(painter, axis, box);
  draw_limit(painter, axis, box);
  draw_range(painter, axis, box);
}

std::vector<Mark> ParallelPlot::make_marks(const QRectF& box) const {
  std::vector<Mark> marks;
  for (const int row : kept()) {
    const ParallelLine& line = data_.lines[row];
    const QPolygonF points = path(row, box);
    if (points.isEmpty()) continue;
    QString text = line.label;
    for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) {
      const double value = line.values[axis];
      if (!std::isnan(value)) text += "\n" + data_.axes[axis].name + ": " + text_of(axis, value);
    }
    marks.push_back({QRectF(points.back() - QPointF(4, 3), QSizeF(8, 6)), text, row});
  }
  return marks;
}

void ParallelPlot::paintEvent(QPaintEvent* event) {
  on_screen_ = true;
  Plot::paintEvent(event);
  on_screen_ = false;
}

void ParallelPlot::draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double line = metrics.height();
  QRectF box = area.adjusted(40, 2 * line + 6, -40, -line - 6);
  if (is_staggered(box)) box.adjust(0, 2 * line, 0, -line);
  if (!on_screen_) {
    draw_lines(painter, box);
    marks = make_marks(box);
  } else {
    const QSize pixels = area.size().toSize() * devicePixelRatioF();
    if (cached_.size() != pixels) {
      cached_ = QPixmap(pixels);
      cached_.setDevicePixelRatio(devicePixelRatioF());
      cached_.fill(Qt::transparent);
      QPainter into(&cached_);
      draw_lines(into, box.translated(-area.topLeft()));
      cached_marks_ = make_marks(box);
    }
    painter.drawPixmap(area.topLeft(), cached_);
    marks = cached_marks_;
    box_ = box;
  }
  painter.setRenderHint(QPainter::Antialiasing);
  for (const int row : highlighted_) {
    painter.setPen(QPen(series_color(1), 2.5));
    painter.drawPolyline(path(row, box));
  }
  for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) draw_axis(painter, axis, box);
}

}  // namespace zl::gui
