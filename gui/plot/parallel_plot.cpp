#include "gui/plot/parallel_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {
namespace {

constexpr int kAxisRoom = 56;  // pixels, for most numbers

}  // namespace

void ParallelPlot::set_data(ParallelData chart) {
  data_ = std::move(chart);
  updateGeometry();
  limits_.assign(data_.axes.size(), {0, 1});
  numbers_.assign(data_.axes.size(), {});
  for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) {
    if (!data_.axes[axis].categories.empty()) {
      limits_[axis] = {-0.5, static_cast<double>(data_.axes[axis].categories.size()) - 0.5};
      continue;
    }
    double low = INFINITY, high = -INFINITY;
    for (const ParallelLine& line : data_.lines) {
      if (std::isnan(line.values[axis])) continue;
      low = std::min(low, line.values[axis]);
      high = std::max(high, line.values[axis]);
    }
    if (low < high) limits_[axis] = {low, high};
    if (low == high) {
      limits_[axis] = {low - std::abs(low) / 2 - 0.5, low + std::abs(low) / 2 + 0.5};
      numbers_[axis] = {low};
    } else if (low < high) {
      numbers_[axis] = {low, high};
    }
  }
  std::erase_if(ranges_, [this](const auto& each) {
    return each.first >= static_cast<int>(data_.axes.size());
  });
  highlighted_.clear();
  cached_ = {};
  data_has_changed();
}

Table ParallelPlot::table() const {
  Table table;
  table.columns = {{"run", Align::left}};
  for (const ParallelAxis& axis : data_.axes) {
    const bool text = !axis.categories.empty();
    table.columns.push_back(
        {axis.name.toStdString(), text ? Align::left : Align::right, axis.unit});
  }
  for (const ParallelLine& line : data_.lines) {
    std::vector<Cell> row{line.label.toStdString()};
    for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) {
      const double value = line.values[axis];
      if (std::isnan(value)) {
        row.emplace_back();
      } else if (data_.axes[axis].categories.empty()) {
        row.emplace_back(value);
      } else {
        row.emplace_back(text_of(axis, value).toStdString());
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void ParallelPlot::brush(int axis, std::optional<Range> range) {
  ranges_.erase(axis);
  if (range) ranges_[axis] = *range;
  cached_ = {};
  update();
  Q_EMIT brushed(kept());
}

std::vector<int> ParallelPlot::kept() const {
  std::vector<int> lines;
  for (std::size_t i = 0; i < data_.lines.size(); ++i) {
    const bool inside = std::all_of(ranges_.begin(), ranges_.end(), [&](const auto& each) {
      const double value = data_.lines[i].values[each.first];
      return value >= each.second.first && value <= each.second.second;
    });
    if (inside) lines.push_back(static_cast<int>(i));
  }
  return lines;
}

void ParallelPlot::set_highlighted(const std::vector<int>& lines) {
  highlighted_ = lines;
  update();
}

QString ParallelPlot::text_of(std::size_t axis, double value) const {
  const auto& categories = data_.axes[axis].categories;
  if (categories.empty()) return value_text(value, data_.axes[axis].unit);
  return categories[static_cast<std::size_t>(value)];
}

// A number loses digits after its point before it loses its unit.
static QString fitting_text(const QFontMetricsF& metrics, QString text, double room) {
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

double ParallelPlot::spacing(const QRectF& box) const {
  return box.width() / std::max(1.0, static_cast<double>(data_.axes.size()) - 1);
}

bool ParallelPlot::is_staggered(const QRectF& box) const { return spacing(box) < kAxisRoom; }

double ParallelPlot::x_of(std::size_t axis, const QRectF& box) const {
  return box.left() + spacing(box) * static_cast<double>(axis);
}

bool ParallelPlot::is_logarithmic(std::size_t axis) const {
  const auto& [low, high] = limits_[axis];
  return data_.axes[axis].categories.empty() && low > 0 && high > 10 * low;
}

double ParallelPlot::y_of(std::size_t axis, double value, const QRectF& box) const {
  const auto& [low, high] = limits_[axis];
  const double share = is_logarithmic(axis) ? std::log(value / low) / std::log(high / low)
                                            : (value - low) / (high - low);
  return box.bottom() - share * box.height();
}

double ParallelPlot::value_at(std::size_t axis, double y, const QRectF& box) const {
  const auto& [low, high] = limits_[axis];
  const double share = (box.bottom() - y) / box.height();
  return is_logarithmic(axis) ? low * std::pow(high / low, share) : low + share * (high - low);
}

QPolygonF ParallelPlot::path(std::size_t line, const QRectF& box) const {
  QPolygonF points;
  for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) {
    const double value = data_.lines[line].values[axis];
    if (!std::isnan(value)) points << QPointF(x_of(axis, box), y_of(axis, value, box));
  }
  return points;
}

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

void ParallelPlot::draw_axis(QPainter& painter, std::size_t axis, const QRectF& box) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double x = x_of(axis, box), line = metrics.height();
  painter.setPen(QPen(palette().text().color(), 1));
  painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()));
  // The outer names stay inside; the inner ones stand over their axis.
  const double apart = spacing(box);
  const bool staggered = is_staggered(box);
  const double out = staggered && axis % 2 == 0 ? 1 : 0;  // rows further
  const auto has_categories = [&](std::size_t i) {
    return i < data_.axes.size() && !data_.axes[i].categories.empty();
  };
  const bool alone = !has_categories(axis - 1) && !has_categories(axis + 1);
  const auto put = [&](double y, const QString& whole, const QColor& color, bool framed) {
    const double room =
        framed ? (alone ? 2 * apart - 16 : apart - 3) : (staggered ? 2 * apart : apart) - 3;
    const QString text = fitting_text(metrics, whole, room);
    const double width = metrics.horizontalAdvance(text) + 4;
    const double left =
        std::clamp(x - width / 2, box.left() - 36, std::max(box.left(), box.right() + 36 - width));
    const QRectF place(left, y, width, line);
    if (framed) painter.fillRect(place, palette().base());
    painter.setPen(color);
    painter.drawText(place, Qt::AlignCenter, text);
  };
  const QString& name = data_.axes[axis].name;
  put(box.top() - (2 + 2 * out) * line - 4, is_logarithmic(axis) ? tr("%1 (log)").arg(name) : name,
      palette().text().color(), false);
  const std::vector<double>& numbers = numbers_[axis];
  if (numbers.size() == 1) {
    put(y_of(axis, numbers[0], box) - line / 2, text_of(axis, numbers[0]), faint(palette()), true);
  } else if (!numbers.empty()) {
    put(box.top() - (1 + 2 * out) * line - 2, text_of(axis, numbers.back()), faint(palette()),
        false);
    put(box.bottom() + 2 + out * line, text_of(axis, numbers.front()), faint(palette()), false);
  }
  const auto& categories = data_.axes[axis].categories;
  const double room = box.height() / std::max(1.0, static_cast<double>(categories.size()));
  for (std::size_t i = 0; room >= line && i < categories.size(); ++i) {
    const double y = y_of(axis, static_cast<double>(i), box);
    put(y - line / 2, categories[i], palette().text().color(), true);
  }
  const std::optional<double>& limit = data_.axes[axis].limit;
  if (limit && *limit > limits_[axis].first && *limit < limits_[axis].second) {
    const double y = y_of(axis, *limit, box);
    painter.setPen(QPen(bad(palette()), 2));
    painter.drawLine(QPointF(x - 10, y), QPointF(x + 10, y));
    put(y - line - 1, tr("capacity"), bad(palette()), true);
  }
  const auto range = ranges_.find(static_cast<int>(axis));
  if (range == ranges_.end()) return;
  const double top = y_of(axis, range->second.second, box);
  const double bottom = y_of(axis, range->second.first, box);
  QColor fill = palette().highlight().color();
  painter.setPen(fill);
  fill.setAlpha(70);
  painter.setBrush(fill);
  painter.drawRect(QRectF(x - 7, top, 14, bottom - top));
  painter.setBrush(Qt::NoBrush);
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

QSize ParallelPlot::minimumSizeHint() const {
  const int between = std::max(0, static_cast<int>(data_.axes.size()) - 1);
  const int height = 14 * fontMetrics().height();  // of five names on an axis, and its captions
  return Plot::minimumSizeHint().expandedTo({kAxisRoom / 2 * between + 96, height});
}

int ParallelPlot::axis_at(double x) const {
  for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) {
    if (std::abs(x_of(axis, box_) - x) <= 10) return static_cast<int>(axis);
  }
  return -1;
}

void ParallelPlot::mousePressEvent(QMouseEvent* event) {
  const int axis = axis_at(event->position().x());
  if (axis < 0 || event->button() != Qt::LeftButton) return Plot::mousePressEvent(event);
  drag_ = Drag{axis, event->position().y(), event->position().y()};
}

void ParallelPlot::mouseMoveEvent(QMouseEvent* event) {
  if (!drag_) return;
  drag_->to = event->position().y();
  const auto axis = static_cast<std::size_t>(drag_->axis);
  const double a = value_at(axis, drag_->from, box_), b = value_at(axis, drag_->to, box_);
  brush(drag_->axis, Range(std::min(a, b), std::max(a, b)));
}

// A click without a drag takes the range away.
void ParallelPlot::mouseReleaseEvent(QMouseEvent*) {
  if (!drag_) return;
  const Drag drag = *drag_;
  drag_.reset();
  if (std::abs(drag.to - drag.from) < 3) brush(drag.axis, std::nullopt);
}

void ParallelPlot::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Escape || ranges_.empty()) return Plot::keyPressEvent(event);
  ranges_.clear();
  cached_ = {};
  update();
  Q_EMIT brushed(kept());
}

void ParallelPlot::changeEvent(QEvent* event) {
  cached_ = {};  // palette or font
  Plot::changeEvent(event);
}

}  // namespace zl::gui
