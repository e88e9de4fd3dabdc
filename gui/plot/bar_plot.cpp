#include "gui/plot/bar_plot.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {

double total(const BarRow& row) {
  return std::accumulate(row.values.begin(), row.values.end(), 0.0);
}

void BarPlot::set_data(BarData chart) {
  data_ = std::move(chart);
  updateGeometry();
  data_has_changed();
}

void BarPlot::set_compact(bool compact) {
  if (compact == compact_) return;
  compact_ = compact;
  updateGeometry();
  update();
}

void BarPlot::set_share(bool share) {
  share_ = share;
  update();
}

// Four times what is to be read is as far as the axis goes.
double BarPlot::axis_end() const {
  if (share_) return 1;
  constexpr double kFar = 4;
  double most = 0, least = INFINITY, fitting = 0;
  for (const BarRow& row : data_.rows) {
    const double end = std::max(total(row), row.high);
    most = std::max(most, end);
    least = std::min(least, end);
    if (!row.bad) fitting = std::max(fitting, end);
  }
  if (fitting <= 0) fitting = data_.rows.empty() ? 0 : least;
  const double limit = data_.limit.value_or(0);
  double end = limit <= kFar * most ? std::max(fitting, limit) : fitting;
  const double far = kFar * end;
  for (const BarRow& row : data_.rows) {
    const double value = std::max(total(row), row.high);
    if (value <= far) end = std::max(end, value);
  }
  return end > 0 ? end : 1;
}

// Every row can be read, whatever the window's size.
double BarPlot::full_height(double width) const {
  constexpr int kAround = 4;  // the limit's name, axis, caption and margins
  const int lines = legend_lines(QFontMetricsF(font()), shown_names(), width - 2 * kMargin) +
                    static_cast<int>(data_.rows.size()) + kAround;
  return lines * (fontMetrics().height() + 4);
}

double BarPlot::least_height() const {
  const double line = fontMetrics().height();
  const int around = data_.limit && !share_ ? 3 : 2;  // legend, axis, the limit's name
  return 2 * kMargin + around * (line + 6) +
         kLeastRow * line * static_cast<double>(data_.rows.size());
}

QSize BarPlot::minimumSizeHint() const {
  const QSize least = Plot::minimumSizeHint();
  const double full = full_height(std::max(width(), least.width()));
  const double height = compact_ ? std::min(full, least_height()) : full;
  return least.expandedTo({0, static_cast<int>(std::ceil(height))});
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

std::vector<QString> BarPlot::shown_names() const {
  std::vector<QString> names;
  for (const std::size_t i : shown_series()) names.push_back(data_.series[i]);
  return names;
}

std::size_t BarPlot::style_of(std::size_t series) const {
  return series < data_.styles.size() ? data_.styles[series] : series;
}

// Briefly: of the note its sign alone.
QString BarPlot::end_text(const BarRow& row, bool brief) const {
  const QString value = value_text(total(row), data_.unit);
  if (row.note.isEmpty()) return value;
  return brief ? value + " " + row.note.left(1) : value + "  " + row.note;
}

QString BarPlot::caption_text() const {
  QStringList parts;
  if (!data_.caption.isEmpty()) parts << data_.caption;
  const double end = axis_end();
  QStringList broken;
  for (const BarRow& row : data_.rows) {
    if (!share_ && total(row) > end * (1 + 1e-9)) broken << row.label;
  }
  if (!broken.isEmpty()) {
    parts << tr("broken at %1: %2").arg(value_text(end, data_.unit), broken.join(", "));
  }
  return parts.join("; ");
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

}  // namespace zl::gui
