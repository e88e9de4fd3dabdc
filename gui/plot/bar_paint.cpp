// How bars are painted.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/plot/bar_plot.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

// Labels and numbers leave the bars at least two fifths of the width.
BarPlot::Layout BarPlot::lay_out(const QRectF& area, const QRectF& below,
                                 const QFontMetricsF& metrics, bool tight) const {
  constexpr double kMostOfLabels = 0.3;
  Layout layout;
  layout.line = metrics.height();
  layout.labels = area.left();
  double left = 0, right = 0, brief = 0;
  for (const BarRow& row : data_.rows) {
    left = std::max(left, metrics.horizontalAdvance(row.label));
    right = std::max(right, metrics.horizontalAdvance(end_text(row, false)));
    brief = std::max(brief, metrics.horizontalAdvance(end_text(row, true)));
  }
  left = std::min(left, kMostOfLabels * area.width());
  layout.brief = right > kMostOfLabels * area.width();
  if (layout.brief) right = brief;
  const double above = data_.limit && !share_ ? layout.line + 4 : 0;
  layout.bars = QRectF(
      QPointF(area.left() + left + 10, below.top() + above),
      QPointF(area.right() - right - 10,
              area.bottom() - layout.line * (tight || caption_text().isEmpty() ? 1 : 2) - 6));
  if (layout.bars.width() < 40) layout.bars.setRight(layout.bars.left() + 40);
  layout.maximum = axis_end();
  layout.row_height = std::min(44.0, layout.bars.height() / static_cast<double>(data_.rows.size()));
  layout.bars.setHeight(layout.row_height * static_cast<double>(data_.rows.size()));
  return layout;
}

std::vector<QString> BarPlot::legend(const QRectF& area, bool tight) const {
  std::vector<QString> names = shown_names();
  if (!tight) return names;
  const QFontMetricsF metrics(font());
  // Rows come first: full lines of them leave what further lines of the legend may take.
  const double rows = (1 - kLeastRow) * metrics.height() * static_cast<double>(data_.rows.size());
  const double to_spare = area.height() + 2 * kMargin - least_height() - rows;
  const int most = 1 + std::max(0, static_cast<int>(to_spare / (metrics.height() + 4)));
  for (int rest = 1; names.size() > 1 && legend_lines(metrics, names, area.width()) > most;
       ++rest) {
    if (rest > 1) names.pop_back();
    names.back() = tr("… %1 more").arg(rest);
  }
  return names;
}

QRectF BarPlot::draw_legend_of(QPainter& painter, const QRectF& area, bool tight) {
  const std::vector<std::size_t> shown = shown_series();
  const std::vector<QString> names = legend(area, tight);
  const auto is_rest = [&](std::size_t i) { return names[i] != data_.series[shown[i]]; };
  std::vector<QRectF> places;
  const QRectF below = draw_legend(
      painter, palette(), area, names,
      [&](std::size_t i, const QRectF& box) {
        if (!is_rest(i)) fill_series(painter, box, style_of(shown[i]));
      },
      &places);
  for (std::size_t i = 0; i < names.size(); ++i) {
    QStringList rest;
    for (std::size_t j = i; is_rest(i) && j < shown.size(); ++j) rest << data_.series[shown[j]];
    if (is_rest(i)) {
      explain(places[i], rest.join("\n"));
    } else if (shown[i] < data_.explained.size()) {
      explain(places[i], data_.explained[shown[i]]);
    }
  }
  return below;
}

void BarPlot::draw_rows(QPainter& painter, const Layout& layout, std::vector<Mark>& marks) {
  painter.save();
  if (layout.row_height < layout.line) {
    QFont small = painter.font();
    small.setPixelSize(static_cast<int>(layout.row_height * 0.85));
    painter.setFont(small);
  }
  for (std::size_t i = 0; i < data_.rows.size(); ++i) {
    draw_labels(painter, layout, i);
    draw_row(painter, layout, i, marks);
  }
  painter.restore();
}

// Under the axis, or without room for it what the axis says of itself.
void BarPlot::draw_caption(QPainter& painter, const QRectF& line, bool tight) {
  const QString caption = caption_text();
  explain(tight ? line.translated(0, -line.height()) : line, caption);
  if (tight) return;
  const QFontMetricsF metrics(painter.font(), painter.device());
  painter.setPen(faint(palette()));
  painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter,
                   metrics.elidedText(caption, Qt::ElideMiddle, line.width()));
}

void BarPlot::draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const bool tight = compact_ && area.height() + 2 * kMargin < full_height(width());
  const QRectF below = draw_legend_of(painter, area, tight);
  const Layout layout = lay_out(area, below, metrics, tight);
  origin_ = layout.bars.left();
  scale_ = layout.bars.width() / layout.maximum;
  draw_axis(painter, layout);
  draw_rows(painter, layout, marks);
  if (data_.limit && !share_) draw_limit(painter, layout);
  draw_caption(
      painter,
      QRectF(area.left(), layout.bars.bottom() + layout.line + 6, area.width(), layout.line),
      tight);
}

void BarPlot::draw_axis(QPainter& painter, const Layout& layout) const {
  const Unit unit = share_ ? Unit::fraction : data_.unit;
  // Three at least: the first is 0, and a step may be up to 2.5 times the third of an axis.
  const int most = std::max(3, static_cast<int>(layout.bars.width() / (5 * layout.line)));
  const double step = tick_step(layout.maximum, most, unit);
  const QFontMetricsF metrics(painter.font(), painter.device());
  double free_from = -INFINITY;
  for (const double value : ticks(0, layout.maximum, step)) {
    const double x = origin_ + value * scale_;
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(x, layout.bars.top()), QPointF(x, layout.bars.bottom() + 3));
    const QString text = tick_text(value, unit);
    const double half = metrics.horizontalAdvance(text) / 2;
    if (x - half < free_from) continue;
    free_from = x + half + 6;
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(x - 60, layout.bars.bottom() + 3, 120, layout.line + 3),
                     Qt::AlignHCenter | Qt::AlignTop, text);
  }
}

void BarPlot::draw_labels(QPainter& painter, const Layout& layout, std::size_t index) {
  const BarRow& row = data_.rows[index];
  const double top = layout.bars.top() + layout.row_height * static_cast<double>(index);
  const QRectF label(layout.labels, top, origin_ - 10 - layout.labels, layout.row_height);
  painter.save();
  if (is_highlighted(index)) {
    painter.fillRect(QRectF(layout.labels, top, rect().width(), layout.row_height),
                     highlight_band(palette()));
    QFont bold = painter.font();
    bold.setBold(true);
    painter.setFont(bold);
  }
  const QFontMetricsF metrics(painter.font(), painter.device());
  const QString text = metrics.elidedText(row.label, Qt::ElideMiddle, label.width());
  painter.setPen(palette().text().color());
  painter.drawText(label, Qt::AlignRight | Qt::AlignVCenter, text);
  painter.restore();
  QStringList said;
  if (text != row.label || !row.explained.isEmpty()) said << row.label;
  if (!row.explained.isEmpty()) said << row.explained;
  explain(label, said.join("\n"));
  // In a column of their own, so that neither limit nor error bars run through the numbers.
  const QRectF number(layout.bars.right() + 10, top, 10000, layout.row_height);
  painter.setPen(row.bad ? bad(palette()) : palette().text().color());
  painter.drawText(number, Qt::AlignLeft | Qt::AlignVCenter, end_text(row, layout.brief));
  if (layout.brief) explain(number, end_text(row, false));
}

// White gaps where a bar goes on beyond the axis.
void BarPlot::draw_break(QPainter& painter, const QRectF& bar) const {
  painter.setPen(QPen(palette().base().color(), 3));
  painter.setRenderHint(QPainter::Antialiasing);
  for (const double back : {18.0, 10.0}) {
    const double x = bar.right() - back;
    painter.drawLine(QPointF(x, bar.bottom() + 2), QPointF(x + 7, bar.top() - 2));
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
}

void BarPlot::draw_row(QPainter& painter, const Layout& layout, std::size_t index,
                       std::vector<Mark>& marks) const {
  const BarRow& row = data_.rows[index];
  const double top = layout.bars.top() + layout.row_height * static_cast<double>(index);
  const double pad = std::min(6.0, layout.row_height * 0.16);
  const double all = total(row), edge = layout.bars.right();
  const double scale = share_ ? (all > 0 ? layout.bars.width() / all : 0) : scale_;
  double x = origin_;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (row.values[i] <= 0) continue;
    QRectF bar(x, top + pad, row.values[i] * scale, layout.row_height - 2 * pad);
    x += bar.width();
    // What lies beyond the axis has a sliver, so that it can be pointed at.
    if (!share_ && bar.right() > edge + 0.5) bar.setRight(edge);
    if (bar.left() > edge - 1) bar.setLeft(edge - 1);
    fill_series(painter, bar, style_of(i));
    marks.push_back({bar,
                     row.label + ", " + data_.series[i] + ": " +
                         value_text(row.values[i], data_.unit) + " (" +
                         share_text(row.values[i] / all) + ")",
                     static_cast<int>(index)});
  }
  if (x > edge + 0.5 && !share_) {
    draw_break(painter,
               QRectF(QPointF(origin_, top + pad), QPointF(edge, top + layout.row_height - pad)));
  } else if (row.high > 0 && !share_) {
    draw_error_bar(painter, row, top + layout.row_height / 2);
  }
}

// On a paler shadow, so that it can be told from any bar.
void BarPlot::draw_error_bar(QPainter& painter, const BarRow& row, double middle) const {
  const double low = origin_ + row.low * scale_;
  const double high = origin_ + std::min(row.high, axis_end()) * scale_;
  const double cap = 4;
  for (const QPen& pen : {QPen(palette().base().color(), 4), QPen(palette().text().color(), 1.5)}) {
    painter.setPen(pen);
    painter.drawLine(QPointF(low, middle), QPointF(high, middle));
    for (const double x : {low, high}) {
      painter.drawLine(QPointF(x, middle - cap), QPointF(x, middle + cap));
    }
  }
}

// A limit beyond the axis is named at its end.
void BarPlot::draw_limit(QPainter& painter, const Layout& layout) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const bool beyond = *data_.limit > layout.maximum * (1 + 1e-9);
  const QString text = beyond ? data_.limit_text + " \u2192" : data_.limit_text;
  const double x = beyond ? layout.bars.right() : origin_ + *data_.limit * scale_;
  painter.setPen(QPen(bad(palette()), 2, Qt::DashLine));
  if (!beyond) {
    painter.drawLine(QPointF(x, layout.bars.top() - 3), QPointF(x, layout.bars.bottom() + 2));
  }
  const double text_width = metrics.horizontalAdvance(text) + 2;
  const double left = std::max(origin_, x - text_width);
  painter.drawText(QRectF(left, layout.bars.top() - layout.line - 4, text_width, layout.line),
                   Qt::AlignLeft | Qt::AlignVCenter, text);
}

}  // namespace zl::gui
