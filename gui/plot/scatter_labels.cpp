// Where the labels of a scatter plot go.
#include <QLineF>
#include <QPainter>
#include <limits>

#include "gui/plot/scatter_frame.h"
#include "gui/theme.h"

namespace zl::gui {
namespace {

constexpr double kBetweenCaptions = 12;  // pixels

struct Place {
  QRectF area;
  std::ptrdiff_t hits = std::numeric_limits<std::ptrdiff_t>::max();  // what it would hide
};

// The best place for a label of `size`: beside its symbol, or some lines above or below.
Place find_place(const QRectF& symbol, const QSizeF& size, const QRectF& box,
                 const std::vector<QRectF>& taken, const QRectF& limit) {
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
    if (limit.intersects(area)) ++hits;
    if (!box.adjusted(0, 0, 12, 0).contains(area)) ++hits;
    if (area.left() < box.left()) hits += 2;  // over the numbers of the axis
    if (area.right() > box.right() + 12) hits += 4;
    if (hits < best.hits) best = {area, hits};
  }
  return best;
}

}  // namespace

ScatterCaptions scatter_captions(const QString& axis, bool logarithmic, double width,
                                 const QFontMetricsF& metrics) {
  ScatterCaptions said;
  for (const QString& name : logarithmic ? QStringList{QObject::tr("%1 (logarithmic)").arg(axis),
                                                       QObject::tr("%1 (log)").arg(axis)}
                                         : QStringList{axis}) {
    for (const QString& hollow :
         {QObject::tr("hollow, ✗: does not fit"), QObject::tr("✗: does not fit"), QString()}) {
      said = {name, hollow};
      const double both = metrics.horizontalAdvance(name) + metrics.horizontalAdvance(hollow);
      if (!hollow.isEmpty() && both + kBetweenCaptions <= width) return said;
    }
  }
  return said;
}

// A label goes where it hides no symbol and no other label, and rather not the capacity, with a
// line to its symbol when that is away; one without such a place is left to the tool tip.
void ScatterPlot::draw_labels(QPainter& painter, const Frame& frame,
                              const std::vector<Mark>& marks) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  std::vector<QRectF> taken;
  for (const Mark& mark : marks) taken.push_back(mark.area);
  QRectF limit_area;
  if (data_.x_limit && !limit_is_far()) {
    const double limit = frame.at(*data_.x_limit, frame.y_min).x();
    limit_area = QRectF(limit - 2, frame.box.top(), 4, frame.box.height());
  }
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const QString text = label_of(data_.points[i]);
    const QRectF& symbol = marks[i].area;
    const QSizeF size(metrics.horizontalAdvance(text) + 2, frame.line);
    const auto [area, hits] = find_place(symbol, size, frame.box, taken, limit_area);
    if (hits > 1) continue;
    taken.push_back(area);
    const double near_x = area.left() > symbol.right() ? area.left() : area.right();
    const QLineF leader(symbol.center(), QPointF(near_x, area.center().y()));
    if (std::abs(area.center().y() - symbol.center().y()) > 1.5 * size.height()) {
      painter.setPen(faint(palette()));
      painter.drawLine(leader.pointAt(1.5 * kSymbolRadius / leader.length()), leader.p2());
    }
    painter.fillRect(area, palette().base());
    painter.setPen(data_.points[i].feasible ? palette().text().color() : faint(palette()));
    painter.drawText(area, Qt::AlignCenter, text);
  }
}

}  // namespace zl::gui
