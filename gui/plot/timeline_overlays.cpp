// What lies over the bars of a timeline: numbers, arrows between lanes, the measured range, the
// selected span; and the names beside them.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/plot/timeline_plot.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

// Where lanes are lower than a line of text, the names of some.
void TimelinePlot::draw_names(QPainter& painter, double left, double width) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  double free_from = -1e18;
  painter.setPen(palette().text().color());
  for (std::size_t i = 0; i < data_.lanes.size(); ++i) {
    const QRectF row = row_area(i);
    const QString& name = data_.lanes[i].name;
    explain(QRectF(left, row.top(), width, row.height()), name);
    const QRectF place(left, row.center().y() - line_ / 2, width, line_);
    if (place.top() < free_from) continue;
    free_from = place.bottom() - line_ / 6;
    painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(name, Qt::ElideMiddle, width));
  }
}

// As large as the bar lets it be, on a plate that leaves the hatches in sight around it.
void TimelinePlot::draw_number(QPainter& painter, const QString& number, const QRectF& bar) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double wide = metrics.horizontalAdvance(number) + 4;
  if (number.isEmpty() || wide + 1 > bar.width() || line_ > bar.height() + 4) return;
  const QRectF plate(bar.center().x() - wide / 2, bar.center().y() - line_ / 2, wide, line_);
  painter.fillRect(plate.intersected(bar), palette().base());
  painter.setPen(palette().text().color());
  painter.drawText(plate, Qt::AlignCenter, number);
}

// Only where there is room between them: zoomed out they would hide the bars.
void TimelinePlot::draw_arrows(QPainter& painter) const {
  constexpr double kRoom = 14, kHead = 4;  // pixels
  std::vector<const Arrow*> seen;
  for (const Arrow& arrow : data_.arrows) {
    if (arrow.end >= visible_.from && arrow.start <= visible_.to) seen.push_back(&arrow);
  }
  const double room = box_.width() * static_cast<double>(data_.lanes.size());
  if (seen.empty() || room < kRoom * static_cast<double>(seen.size())) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(palette().text().color(), 1));
  painter.setBrush(palette().text().color());
  for (const Arrow* arrow : seen) {
    const QRectF from = row_area(arrow->from), to = row_area(arrow->to);
    const double side = arrow->to > arrow->from ? 1 : -1;
    const QPointF tail(x_of(arrow->start), from.center().y() + side * from.height() / 4);
    const QPointF tip(x_of(arrow->end), to.center().y() - side * to.height() / 4);
    painter.drawLine(tail, tip);
    const double turned = std::atan2(tip.y() - tail.y(), tip.x() - tail.x());
    const auto corner = [&](double by) {
      return tip - kHead * QPointF(std::cos(turned + by), std::sin(turned + by));
    };
    painter.drawPolygon(QPolygonF({tip, corner(0.5), corner(-0.5)}));
  }
  painter.restore();
}

void TimelinePlot::draw_measured(QPainter& painter) const {
  QColor fill = palette().highlight().color();
  fill.setAlpha(60);
  const QRectF range(QPointF(x_of(measured_->from), box_.top()),
                     QPointF(x_of(measured_->to), box_.bottom()));
  painter.fillRect(range, fill);
  const QString text = seconds_text(measured_->length());
  const QFontMetricsF metrics(painter.font(), painter.device());
  QRectF plate(0, 0, metrics.horizontalAdvance(text) + 10, line_ + 2);
  plate.moveCenter({std::clamp(range.center().x(), box_.left() + plate.width() / 2,
                               box_.right() - plate.width() / 2),
                    box_.bottom() - line_});
  painter.fillRect(plate, palette().base());
  painter.setPen(palette().text().color());
  painter.drawText(plate, Qt::AlignCenter, text);
}

void TimelinePlot::draw_overlays(QPainter& painter, std::vector<Mark>& marks) {
  painter.save();
  painter.setClipRect(box_.adjusted(-1, -1, 1, 1), Qt::IntersectClip);
  if (measured_) draw_measured(painter);
  if (selected_) {
    const Span& span = data_.lanes[selected_->lane].spans[selected_->span];
    QRectF bar = row_area(selected_->lane);
    bar.setLeft(x_of(span.start));
    bar.setRight(std::max(bar.left() + 1, x_of(span.end)));
    painter.setPen(QPen(palette().text().color(), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(bar.intersected(box_).adjusted(0, -1, 0, 1));
    marks.push_back({bar,
                     name_of(data_.lanes[selected_->lane], span) + ", " +
                         seconds_text(span.end - span.start) + tr(" from ") +
                         seconds_text(span.start),
                     span.event});
  }
  painter.restore();
}

}  // namespace zl::gui
