#include <algorithm>
#include <cmath>
#include <numeric>

#include "results/svg_parts.h"

namespace zl {
namespace {

constexpr double kRow = 30;
constexpr double kBar = 20;

double total(const ChartBar& bar) {
  return std::accumulate(bar.values.begin(), bar.values.end(), 0.0);
}

Scale scale_of(const BarChart& chart) {
  double most = chart.limit;
  for (const ChartBar& bar : chart.bars) most = std::max({most, total(bar), bar.high, bar.mark});
  return Scale(most * 1.02);
}

// Names of the series that some bar shows; the others are blank.
std::vector<std::string> shown_series(const BarChart& chart) {
  std::vector<std::string> names = chart.series;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto shows = [i](const ChartBar& bar) {
      return i < bar.values.size() && bar.values[i] > 0;
    };
    if (std::none_of(chart.bars.begin(), chart.bars.end(), shows)) names[i].clear();
  }
  return names;
}

void draw_whisker(Svg& svg, const Scale& scale, const ChartBar& bar, double middle) {
  const double low = scale.x(bar.low), high = scale.x(bar.high);
  svg.line(low, middle, high, middle, "whisker");
  for (const double x : {low, high}) svg.line(x, middle - 5, x, middle + 5, "whisker");
}

void draw_bar(Svg& svg, const Scale& scale, const ChartBar& bar, double top) {
  const double middle = top + kBar / 2;
  svg.label(middle + 4, bar.label);
  double from = 0;
  for (std::size_t i = 0; i < bar.values.size(); ++i) {
    if (bar.values[i] <= 0) continue;
    const double x = scale.x(from);
    from += bar.values[i];
    svg.rectangle(x, top, scale.x(from) - x, kBar, i);
  }
  if (bar.high > 0) draw_whisker(svg, scale, bar, middle);
  if (bar.mark > 0) svg.diamond(scale.x(bar.mark), middle);
}

void draw_note(Svg& svg, const BarChart& chart, const Scale& scale, const ChartBar& bar,
               double top) {
  const std::string note = bar.note.empty() ? readable(total(bar), chart.unit) : bar.note;
  const double end = scale.x(std::max({total(bar), bar.high, bar.mark}));
  svg.text(end + (bar.mark > 0 ? 12 : 8), top + kBar / 2 + 4, note, Svg::Anchor::start,
           bar.bad ? "bad" : "");
}

}  // namespace

std::string svg_bars(const BarChart& chart) {
  Svg svg;
  const Scale scale = scale_of(chart);
  double top = svg.legend(kChartTop, shown_series(chart), chart.mark_text);
  if (chart.limit > 0) top += 14;  // for the line's name
  const double bottom = top + kRow * static_cast<double>(chart.bars.size());
  svg.axis(scale, top, bottom, chart.unit);
  const auto row = [top](std::size_t i) {
    return top + kRow * static_cast<double>(i) + (kRow - kBar) / 2;
  };
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    draw_bar(svg, scale, chart.bars[i], row(i));
  }
  if (chart.limit > 0) {
    const double x = scale.x(chart.limit);
    svg.line(x, top - 4, x, bottom, "limit");
    svg.text(x, top - 8, chart.limit_text, Svg::Anchor::end, "bad");
  }
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    draw_note(svg, chart, scale, chart.bars[i], row(i));
  }
  return svg.finish(chart.text, bottom + 26);
}

}  // namespace zl
