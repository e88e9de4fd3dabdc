// Curves over the steps of runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/svg_parts.h"

namespace zl {
namespace {

constexpr double kLeftEdge = 80, kRightEdge = 930, kHeight = 260;
constexpr std::size_t kColumns = 400;  // each shows its lowest and highest value

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool holds_any() const { return low <= high; }
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

// From values to the plot area, whose y grows downwards.
struct Plot {
  Range x, y;
  bool logarithmic = false;
  double top = 0;

  double scaled(double value) const { return logarithmic ? std::log10(value) : value; }
  double at_x(double value) const { return kLeftEdge + x.share(value) * (kRightEdge - kLeftEdge); }
  double at_y(double value) const { return top + (1 - y.share(scaled(value))) * kHeight; }
};

double step_of(double span) {
  const double power = std::pow(10, std::floor(std::log10(span / 4)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (span / (factor * power) <= 5) return factor * power;
  }
  return 10 * power;
}

// The round values of a range, which has at least one.
std::vector<double> round_values(const Range& range) {
  const double span = range.high - range.low;
  if (!(span > 0) || !std::isfinite(span)) return {range.low};
  const double step = step_of(span);
  std::vector<double> values;
  for (double at = std::ceil(range.low / step); at * step <= range.high && values.size() < 12;
       ++at) {
    values.push_back(at * step == 0 ? 0.0 : at * step);
  }
  return values;
}

double step_at(const ChartCurve& curve, std::size_t value) {
  if (curve.steps.empty()) return static_cast<double>(curve.first) + static_cast<double>(value);
  return static_cast<double>(curve.steps[value]);
}

Plot plot_of(const CurveChart& chart) {
  Plot plot;
  Range values;
  for (const ChartCurve& curve : chart.curves) {
    for (const double y : curve.values) values.take(y);
    if (curve.values.empty()) continue;
    plot.x.take(step_at(curve, 0));
    plot.x.take(step_at(curve, curve.values.size() - 1));
  }
  constexpr double kWide = 100;  // what a linear axis would squeeze
  plot.logarithmic = values.low > 0 && values.high / values.low > kWide;
  if (!values.holds_any()) return plot;
  plot.y.take(plot.scaled(values.low));
  plot.y.take(plot.scaled(values.high));
  return plot;
}

// Of many values that share a column of the plot the lowest and the highest, in their order.
std::vector<std::size_t> shown_points(const std::vector<double>& values) {
  std::vector<std::size_t> points;
  const std::size_t count = values.size();
  if (count <= 2 * kColumns) {
    for (std::size_t i = 0; i < count; ++i) points.push_back(i);
    return points;
  }
  for (std::size_t column = 0; column < kColumns; ++column) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(column * count / kColumns);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>((column + 1) * count / kColumns);
    const auto [low, high] = std::minmax_element(begin, end);
    points.push_back(std::min(low, high) - values.begin());
    if (low != high) points.push_back(std::max(low, high) - values.begin());
  }
  return points;
}

void draw_curve(Svg& svg, const Plot& plot, const ChartCurve& curve, std::size_t series) {
  std::string path;
  bool pen_down = false;
  for (const std::size_t i : shown_points(curve.values)) {
    const double value = curve.values[i];
    const bool shows = std::isfinite(value) && (!plot.logarithmic || value > 0);
    if (shows) {
      const double x = plot.at_x(step_at(curve, i));
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x, plot.at_y(value));
      if (!pen_down) path += "h0";  // a point alone is seen, too
    }
    pen_down = shows;
  }
  if (path.empty()) return;
  svg.append(fmt::format("<path d=\"{}\" class=\"curve c{}\"/>\n", path, series % kSeries));
}

void draw_axes(Svg& svg, const Plot& plot) {
  const double bottom = plot.top + kHeight;
  for (const double value : round_values(plot.x)) {
    if (value != std::floor(value)) continue;
    svg.line(plot.at_x(value), plot.top, plot.at_x(value), bottom, "grid");
    svg.text(plot.at_x(value), bottom + 16, fmt::format("{:.0f}", value), Svg::Anchor::middle,
             "faint");
  }
  for (const double at : round_values(plot.y)) {
    const double y = plot.top + (1 - plot.y.share(at)) * kHeight;
    const double value = plot.logarithmic ? std::pow(10, at) : at;
    svg.line(kLeftEdge, y, kRightEdge, y, "grid");
    svg.text(kLeftEdge - 8, y + 4, fmt::format("{:.3g}", value), Svg::Anchor::end, "faint");
  }
}

}  // namespace

std::string svg_curves(const CurveChart& chart) {
  Svg svg;
  Plot plot = plot_of(chart);
  std::vector<std::string> names;
  for (const ChartCurve& curve : chart.curves) names.push_back(curve.name);
  plot.top = svg.curve_legend(kChartTop, names, kLeftEdge) + 4;
  if (plot.y.holds_any()) draw_axes(svg, plot);
  for (std::size_t i = 0; i < chart.curves.size(); ++i) draw_curve(svg, plot, chart.curves[i], i);
  const std::string axis = plot.logarithmic ? "step; the values are on a logarithmic axis" : "step";
  svg.text((kLeftEdge + kRightEdge) / 2, plot.top + kHeight + 34, axis, Svg::Anchor::middle,
           "faint");
  return svg.finish(chart.text, plot.top + kHeight + 44);
}

}  // namespace zl
