#include "gui/plot/parallel_plot.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <algorithm>
#include <cmath>

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

double ParallelPlot::spacing(const QRectF& box) const {
  return box.width() / std::max(1.0, static_cast<double>(data_.axes.size()) - 1);
}

QString ParallelPlot::caption(std::size_t axis) const {
  const QString& name = data_.axes[axis].name;
  return is_logarithmic(axis) ? tr("%1 (log)").arg(name) : name;
}

bool ParallelPlot::is_staggered(const QRectF& box) const {
  if (spacing(box) < kAxisRoom) return true;
  const QFontMetricsF metrics(font());
  for (std::size_t axis = 0; axis < data_.axes.size(); ++axis) {
    if (metrics.horizontalAdvance(caption(axis)) + 3 > spacing(box)) return true;
  }
  return false;
}

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
