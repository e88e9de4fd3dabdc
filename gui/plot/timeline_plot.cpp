#include "gui/plot/timeline_plot.h"

#include <QPainter>
#include <QtMath>
#include <algorithm>
#include <cmath>

#include "gui/plot/decimate.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {
namespace {

// First span that ends after `seconds`.
std::size_t first_after(const std::vector<Span>& spans, double seconds) {
  const auto found = std::partition_point(
      spans.begin(), spans.end(), [seconds](const Span& span) { return span.end <= seconds; });
  return static_cast<std::size_t>(found - spans.begin());
}

constexpr double kMapHeight = 10;
constexpr double kLaneHeight = 34;

}  // namespace

void TimelinePlot::set_data(TimelineData chart) {
  data_ = std::move(chart);
  whole_ = {0, data_.end};
  for (const Lane& lane : data_.lanes) {
    if (lane.spans.empty()) continue;
    whole_.from = std::min(whole_.from, lane.spans.front().start);
    whole_.to = std::max(whole_.to, lane.spans.back().end);
  }
  if (whole_.length() <= 0) whole_.to = whole_.from + 1;
  visible_ = whole_;
  back_.clear();
  forward_.clear();
  selected_.reset();
  measured_.reset();
  data_has_changed();
}

bool TimelinePlot::is_empty() const {
  return std::all_of(data_.lanes.begin(), data_.lanes.end(),
                     [](const Lane& lane) { return lane.spans.empty(); });
}

Table TimelinePlot::table() const {
  constexpr std::size_t kMost = 5000;
  Table table;
  table.columns = {{"lane", Align::left},
                   {"what", Align::left},
                   {"kind", Align::left},
                   {"start", Align::right, Unit::seconds},
                   {"duration", Align::right, Unit::seconds}};
  for (const Lane& lane : data_.lanes) {
    for (std::size_t i = first_after(lane.spans, visible_.from); i < lane.spans.size(); ++i) {
      const Span& span = lane.spans[i];
      if (span.start >= visible_.to || table.rows.size() >= kMost) break;
      table.rows.push_back({lane.name.toStdString(), name_of(lane, span).toStdString(),
                            data_.categories[span.category].toStdString(), span.start,
                            span.end - span.start});
    }
  }
  return table;
}

QString TimelinePlot::name_of(const Lane& lane, const Span& span) const {
  return lane.describe ? lane.describe(span.event) : data_.describe(span.event);
}

std::size_t TimelinePlot::style_of(std::size_t category) const {
  return category < data_.styles.size() ? data_.styles[category] : category;
}

double TimelinePlot::x_of(double seconds) const {
  return box_.left() + (seconds - visible_.from) / visible_.length() * box_.width();
}

double TimelinePlot::seconds_at(double x) const {
  if (box_.width() <= 0) return visible_.from;
  return visible_.from + (x - box_.left()) / box_.width() * visible_.length();
}

QRectF TimelinePlot::row_area(std::size_t lane) const {
  constexpr double kGap = 4, kMostOfLane = 0.25;
  return {box_.left(), box_.top() + lane_height_ * static_cast<double>(lane), box_.width(),
          lane_height_ - std::min(kGap, kMostOfLane * lane_height_)};
}

void TimelinePlot::draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  line_ = metrics.height();
  std::vector<QRectF> places;
  const QRectF below = draw_legend(
      painter, palette(), area, data_.categories,
      [&](std::size_t i, const QRectF& box) { fill_series(painter, box, style_of(i)); }, &places);
  for (std::size_t i = 0; i < data_.explained.size(); ++i) explain(places[i], data_.explained[i]);
  constexpr double kMostOfNames = 0.22;
  double left = 0;
  for (const MemoryTrack& track : data_.memory) {
    left = std::max(left, metrics.horizontalAdvance(track.name));
  }
  for (const Lane& lane : data_.lanes) left = std::max(left, metrics.horizontalAdvance(lane.name));
  left = std::min(left, kMostOfNames * area.width());
  box_ = below.adjusted(left + 10, kMapHeight + line_ + 10, -6, 0);
  const double lanes = static_cast<double>(data_.lanes.size());
  const double tracks = std::max(1.0, static_cast<double>(data_.memory.size()));
  lane_height_ = std::min(kLaneHeight, box_.height() / (lanes + 1.5 * tracks));
  draw_axis(painter);
  draw_names(painter, area.left(), left);
  painter.save();
  painter.setClipRect(box_, Qt::IntersectClip);
  for (std::size_t i = 0; i < data_.lanes.size(); ++i) {
    draw_lane(painter, data_.lanes[i], row_area(i));
  }
  draw_arrows(painter);
  painter.restore();
  const double top = row_area(data_.lanes.size()).top() + 4;
  const double height =
      (box_.bottom() - top) / std::max(1.0, static_cast<double>(data_.memory.size()));
  for (std::size_t i = 0; i < data_.memory.size(); ++i) {
    const QRectF memory(box_.left(), top + height * static_cast<double>(i), box_.width(),
                        height - 3);
    painter.setPen(palette().text().color());
    painter.drawText(QRectF(area.left(), memory.top(), left, line_), Qt::AlignRight,
                     metrics.elidedText(data_.memory[i].name, Qt::ElideMiddle, left));
    draw_memory(painter, data_.memory[i], memory);
  }
  draw_overlays(painter, marks);
}

void TimelinePlot::draw_axis(QPainter& painter) {
  // The whole run, with the visible part marked.
  const QRectF map(box_.left(), box_.top() - kMapHeight - line_ - 6, box_.width(), kMapHeight);
  painter.fillRect(map, grid(palette()));
  const double scale = map.width() / whole_.length();
  QRectF window(map.left() + (visible_.from - whole_.from) * scale, map.top(),
                std::max(3.0, visible_.length() * scale), map.height());
  painter.fillRect(window, palette().highlight());
  const int most = std::max(3, static_cast<int>(box_.width() / (8 * line_)));
  const double step = tick_step(visible_.length(), most, Unit::seconds);
  for (const double at : ticks(visible_.from, visible_.to, step)) {
    const double x = x_of(at);
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(x, box_.top() - 3), QPointF(x, box_.bottom()));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(x - 60, box_.top() - line_ - 3, 120, line_), Qt::AlignCenter,
                     time_tick_text(at, step, std::max(std::abs(visible_.from), visible_.to)));
  }
}

// Spans narrower than a pixel are merged: each column gets the kind that fills most of it.
void TimelinePlot::draw_lane(QPainter& painter, const Lane& lane, const QRectF& row) const {
  const double scale = box_.width() / visible_.length();
  std::size_t begin = first_after(lane.spans, visible_.from);
  double column = -1e18;
  std::array<double, 256> filled{};
  std::uint8_t most = 0;
  const auto flush = [&] {
    if (filled[most] <= 0) return;
    painter.fillRect(QRectF(column, row.top(), 1, row.height()), series_color(style_of(most)));
    for (std::size_t i = 0; i < data_.categories.size(); ++i) filled[i] = 0;
  };
  const std::size_t last = first_after(lane.spans, visible_.to);
  const bool detailed = last - begin < 2000;
  for (std::size_t i = begin; i < lane.spans.size(); ++i) {
    const Span& span = lane.spans[i];
    if (span.start >= visible_.to) break;
    const double x0 = box_.left() + (span.start - visible_.from) * scale;
    const double wide = (span.end - span.start) * scale;
    if (wide >= 1) {
      draw_span(painter, lane, span, QRectF(x0, row.top(), wide, row.height()), detailed);
      continue;
    }
    const double pixel = std::floor(x0);
    if (pixel != column) {
      flush();
      column = pixel;
      most = span.category;
    }
    filled[span.category] += std::max(wide, 1e-9);
    if (filled[span.category] > filled[most]) most = span.category;
  }
  flush();
}

// A border on the left tells it from the one before, whatever their colours.
void TimelinePlot::draw_span(QPainter& painter, const Lane& lane, const Span& span,
                             const QRectF& bar, bool detailed) const {
  constexpr double kBorder = 3, kHatched = 6, kNamed = 24;  // pixels from which it has them
  const QRectF seen = bar.intersected(box_);
  const std::size_t style = style_of(span.category);
  if (!detailed || seen.width() < kHatched) {
    painter.fillRect(seen, series_color(style));
  } else {
    fill_series(painter, seen, style);
  }
  if (seen.width() >= kBorder && bar.left() >= box_.left()) {
    painter.fillRect(QRectF(seen.left(), seen.top(), 1, seen.height()), palette().base());
  }
  if (detailed && lane.number) return draw_number(painter, lane.number(span.event), seen);
  if (!detailed || seen.width() < kNamed) return;
  const QFontMetricsF metrics(painter.font(), painter.device());
  const QString name = metrics.elidedText(name_of(lane, span), Qt::ElideRight, seen.width() - 8);
  if (name.size() < 3) return;
  const double text = metrics.horizontalAdvance(name) + 6;
  const QRectF plate(seen.left() + 2, seen.center().y() - line_ / 2, text, line_);
  painter.fillRect(plate, palette().base());
  painter.setPen(palette().text().color());
  painter.drawText(plate, Qt::AlignCenter, name);
}

void TimelinePlot::draw_memory(QPainter& painter, const MemoryTrack& track,
                               const QRectF& row) const {
  if (track.x.empty() || row.height() < 20) return;
  double highest = *std::max_element(track.y.begin(), track.y.end());
  if (data_.limit && *data_.limit < 2 * highest) highest = std::max(highest, *data_.limit);
  if (highest <= 0) highest = 1;
  const auto& x = track.x;
  auto begin = std::upper_bound(x.begin(), x.end(), visible_.from) - x.begin();
  auto end = std::upper_bound(x.begin(), x.end(), visible_.to) - x.begin();
  begin = std::max<std::ptrdiff_t>(0, begin - 1);
  end = std::min<std::ptrdiff_t>(std::ssize(x), end + 1);
  const double x_scale = box_.width() / visible_.length();
  const double y_scale = -(row.height() - 6) / (highest * 1.03);
  const Scale scale{box_.left() - visible_.from * x_scale, x_scale, row.bottom() - 2, y_scale};
  QPolygonF line = decimate(x, track.y, static_cast<std::size_t>(begin),
                            static_cast<std::size_t>(end), scale, true);
  if (line.isEmpty()) return;
  line << QPointF(box_.right() + 2, line.back().y());
  painter.save();
  painter.setClipRect(row, Qt::IntersectClip);
  const QColor fill = pale_series_color(palette(), 0);
  // Bar by bar: a polygon of a thousand spikes takes Qt a second to fill.
  for (qsizetype i = 0; i + 1 < line.size(); ++i) {
    const int left = qFloor(line[i].x()), wide = qFloor(line[i + 1].x()) - left;
    const int top = qFloor(line[i].y());
    if (wide > 0) painter.fillRect(left, top, wide, qCeil(row.bottom()) - top, fill);
  }
  painter.setPen(QPen(series_color(0), 1));
  painter.drawPolyline(line);
  QString text = tr("highest: ") + bytes_text(*std::max_element(track.y.begin(), track.y.end()));
  if (data_.limit && *data_.limit <= highest) {
    painter.setPen(QPen(bad(palette()), 2, Qt::DashLine));
    const double y = scale.y(*data_.limit);
    painter.drawLine(QPointF(row.left(), y), QPointF(row.right(), y));
    text += tr(", capacity ") + bytes_text(*data_.limit);
  }
  painter.setPen(faint(palette()));
  painter.drawText(row.adjusted(4, 2, -4, -3), Qt::AlignBottom | Qt::AlignLeft, text);
  painter.restore();
}

}  // namespace zl::gui
