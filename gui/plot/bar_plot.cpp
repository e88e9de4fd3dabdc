#include "gui/plot/bar_plot.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

namespace {

double total(const BarRow& row) {
  return std::accumulate(row.values.begin(), row.values.end(), 0.0);
}

}  // namespace

struct BarPlot::Layout {
  QRectF bars;        // where bars may be
  double labels = 0;  // left edge of the row labels
  double row_height = 0;
  double maximum = 0;  // value at the right edge
  double line = 0;     // text height
};

void BarPlot::set_data(BarData chart) {
  data_ = std::move(chart);
  updateGeometry();
  data_has_changed();
}

void BarPlot::set_share(bool share) {
  share_ = share;
  update();
}

double BarPlot::longest() const {
  double longest = share_ ? 1 : data_.limit.value_or(0);
  for (const BarRow& row : data_.rows) {
    longest = std::max(longest, share_ ? 1 : std::max(total(row), row.high));
  }
  return longest > 0 ? longest : 1;
}

// Every row can be read, whatever the window's size.
QSize BarPlot::minimumSizeHint() const {
  const QSize least = Plot::minimumSizeHint();
  std::vector<QString> names;
  for (const std::size_t i : shown_series()) names.push_back(data_.series[i]);
  constexpr int kAround = 4;  // the limit's name, axis, caption and margins
  const int lines =
      legend_lines(QFontMetricsF(font()), names, std::max(width(), least.width()) - 2 * kMargin) +
      static_cast<int>(data_.rows.size()) + kAround;
  return least.expandedTo({0, lines * (fontMetrics().height() + 4)});
}

void BarPlot::resizeEvent(QResizeEvent* event) {
  Plot::resizeEvent(event);
  updateGeometry();  // the legend folds otherwise
}

// Of which some row has any.
std::vector<std::size_t> BarPlot::shown_series() const {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < data_.series.size(); ++i) {
    const auto has_any = [i](const BarRow& row) { return row.values[i] > 0; };
    if (std::any_of(data_.rows.begin(), data_.rows.end(), has_any)) shown.push_back(i);
  }
  return shown;
}

QString BarPlot::end_text(const BarRow& row) const {
  const QString value = value_text(total(row), data_.unit);
  return row.note.isEmpty() ? value : value + "  " + row.note;
}

Table BarPlot::table() const {
  Table table;
  table.columns.push_back({data_.rows_name.toStdString(), Align::left, Unit::none});
  for (const QString& name : data_.series) {
    table.columns.push_back({name.toStdString(), Align::right, data_.unit});
  }
  table.columns.push_back({"total", Align::right, data_.unit});
  const bool has_error_bars = std::any_of(data_.rows.begin(), data_.rows.end(),
                                          [](const BarRow& row) { return row.high > 0; });
  if (has_error_bars) {
    table.columns.push_back({"low", Align::right, data_.unit});
    table.columns.push_back({"high", Align::right, data_.unit});
  }
  for (const BarRow& row : data_.rows) {
    std::vector<Cell> cells{row.label.toStdString()};
    cells.insert(cells.end(), row.values.begin(), row.values.end());
    cells.emplace_back(total(row));
    if (has_error_bars) cells.insert(cells.end(), {row.low, row.high});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

void BarPlot::draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const std::vector<std::size_t> shown = shown_series();
  std::vector<QString> names;
  for (const std::size_t i : shown) names.push_back(data_.series[i]);
  const QRectF below =
      draw_legend(painter, palette(), area, names,
                  [&](std::size_t i, const QRectF& box) { fill_series(painter, box, shown[i]); });
  Layout layout;
  layout.line = metrics.height();
  layout.labels = area.left();
  double left = 0, right = 0;
  for (const BarRow& row : data_.rows) {
    left = std::max(left, metrics.horizontalAdvance(row.label));
    right = std::max(right, metrics.horizontalAdvance(end_text(row)));
  }
  const double above = data_.limit && !share_ ? layout.line + 4 : 0;
  layout.bars =
      QRectF(QPointF(area.left() + left + 10, below.top() + above),
             QPointF(area.right() - right - 10,
                     area.bottom() - layout.line * (data_.caption.isEmpty() ? 1 : 2) - 6));
  if (layout.bars.width() < 40) layout.bars.setRight(layout.bars.left() + 40);
  layout.maximum = longest();
  layout.row_height = std::min(44.0, layout.bars.height() / static_cast<double>(data_.rows.size()));
  layout.bars.setHeight(layout.row_height * static_cast<double>(data_.rows.size()));
  origin_ = layout.bars.left();
  scale_ = layout.bars.width() / layout.maximum;
  draw_axis(painter, layout);
  for (std::size_t i = 0; i < data_.rows.size(); ++i) draw_row(painter, layout, i, marks);
  if (data_.limit && !share_) draw_limit(painter, layout);
  painter.setPen(faint(palette()));
  painter.drawText(
      QRectF(area.left(), layout.bars.bottom() + layout.line + 6, area.width(), layout.line),
      Qt::AlignRight | Qt::AlignVCenter,
      metrics.elidedText(data_.caption, Qt::ElideRight, area.width()));
}

void BarPlot::draw_axis(QPainter& painter, const Layout& layout) const {
  const Unit unit = share_ ? Unit::fraction : data_.unit;
  const int most = std::max(1, static_cast<int>(layout.bars.width() / (5 * layout.line)));
  const double step = tick_step(layout.maximum, most, unit);
  for (const double value : ticks(0, layout.maximum, step)) {
    const double x = origin_ + value * scale_;
    painter.setPen(grid(palette()));
    painter.drawLine(QPointF(x, layout.bars.top()), QPointF(x, layout.bars.bottom() + 3));
    painter.setPen(faint(palette()));
    painter.drawText(QRectF(x - 60, layout.bars.bottom() + 3, 120, layout.line + 3),
                     Qt::AlignHCenter | Qt::AlignTop, tick_text(value, unit));
  }
}

void BarPlot::draw_row(QPainter& painter, const Layout& layout, std::size_t index,
                       std::vector<Mark>& marks) const {
  const BarRow& row = data_.rows[index];
  const double top = layout.bars.top() + layout.row_height * static_cast<double>(index);
  const double pad = std::min(6.0, layout.row_height * 0.16);
  const double all = total(row);
  const double scale = share_ ? (all > 0 ? layout.bars.width() / all : 0) : scale_;
  painter.setPen(palette().text().color());
  painter.drawText(QRectF(layout.labels, top, origin_ - 10 - layout.labels, layout.row_height),
                   Qt::AlignRight | Qt::AlignVCenter, row.label);
  double x = origin_;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const QRectF bar(x, top + pad, row.values[i] * scale, layout.row_height - 2 * pad);
    if (row.values[i] <= 0) continue;
    fill_series(painter, bar, i);
    marks.push_back({bar,
                     row.label + ", " + data_.series[i] + ": " +
                         value_text(row.values[i], data_.unit) + " (" +
                         share_text(row.values[i] / all) + ")",
                     static_cast<int>(index)});
    x += bar.width();
  }
  if (row.high > 0 && !share_) draw_error_bar(painter, row, top + layout.row_height / 2);
  // In a column of their own, so that neither limit nor error bars run through the numbers.
  painter.setPen(row.bad ? bad(palette()) : palette().text().color());
  painter.drawText(QRectF(layout.bars.right() + 10, top, 10000, layout.row_height),
                   Qt::AlignLeft | Qt::AlignVCenter, end_text(row));
}

// On a paler shadow, so that it can be told from any bar.
void BarPlot::draw_error_bar(QPainter& painter, const BarRow& row, double middle) const {
  const double low = origin_ + row.low * scale_, high = origin_ + row.high * scale_;
  const double cap = 4;
  for (const QPen& pen : {QPen(palette().base().color(), 4), QPen(palette().text().color(), 1.5)}) {
    painter.setPen(pen);
    painter.drawLine(QPointF(low, middle), QPointF(high, middle));
    for (const double x : {low, high}) {
      painter.drawLine(QPointF(x, middle - cap), QPointF(x, middle + cap));
    }
  }
}

void BarPlot::draw_limit(QPainter& painter, const Layout& layout) const {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double x = origin_ + *data_.limit * scale_;
  painter.setPen(QPen(bad(palette()), 2, Qt::DashLine));
  painter.drawLine(QPointF(x, layout.bars.top() - 3), QPointF(x, layout.bars.bottom() + 2));
  const double text_width = metrics.horizontalAdvance(data_.limit_text) + 2;
  const double left = std::max(origin_, x - text_width);
  painter.drawText(QRectF(left, layout.bars.top() - layout.line - 4, text_width, layout.line),
                   Qt::AlignLeft | Qt::AlignVCenter, data_.limit_text);
}

}  // namespace zl::gui
