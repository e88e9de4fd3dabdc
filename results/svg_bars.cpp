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

constexpr double kSquashed = 5;  // times: what is so much longer leaves nothing to see of the rest

// To where a bar reaches.
double reach(const ChartBar& bar) { return std::max({total(bar), bar.high, bar.mark}); }

double longest(const BarChart& chart, bool bad) {
  double most = 0;
  for (const ChartBar& bar : chart.bars) {
    if (bar.bad == bad) most = std::max(most, reach(bar));
  }
  return most;
}

// Of all bars and the limit; but a limit far beyond all bars is only named, and bars that are a
// warning are cut off where they would squash the rest.
double axis_end(const BarChart& chart) {
  const double good = longest(chart, false), bad = longest(chart, true);
  const double bars = std::max(good, bad);
  const double limit = chart.limit > kSquashed * bars && bars > 0 ? 0 : chart.limit;
  const double rest = std::max(good, limit);
  return rest > 0 && bad > kSquashed * rest ? 1.3 * rest : std::max(rest, bad);
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

// Two strokes across a bar that goes on beyond the axis.
void draw_cut(Svg& svg, double x, double top) {
  for (const double at : {x - 14, x - 9}) svg.line(at, top + kBar + 3, at + 6, top - 3, "cut");
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
  if (total(bar) > scale.most) draw_cut(svg, scale.x(from), top);
  if (bar.high > 0) draw_whisker(svg, scale, bar, middle);
  if (bar.mark > 0) svg.diamond(scale.x(bar.mark), middle);
}

// After the bar, and not across the line of the limit.
void draw_note(Svg& svg, const BarChart& chart, const Scale& scale, const ChartBar& bar,
               double top) {
  const std::string note = bar.note.empty() ? readable(total(bar), chart.unit) : bar.note;
  double x = scale.x(reach(bar)) + (bar.mark > 0 ? 12 : 8);
  const double line = scale.x(chart.limit);
  const bool shown = chart.limit > 0 && chart.limit <= scale.most;
  if (shown && x - 4 < line && line < x + Svg::width(note) + 4) x = line + 6;
  svg.text(x, top + kBar / 2 + 4, note, Svg::Anchor::start, bar.bad ? "bad" : "");
}

void draw_limit(Svg& svg, const BarChart& chart, const Scale& scale, double top, double bottom) {
  const double x = scale.x(chart.limit);
  if (chart.limit > scale.most) {
    svg.text(x, top - 8, chart.limit_text + ", beyond this axis", Svg::Anchor::end, "bad");
    return;
  }
  svg.line(x, top - 4, x, bottom, "limit");
  svg.text(x, top - 8, chart.limit_text, Svg::Anchor::end, "bad");
}

}  // namespace

std::string svg_bars(const BarChart& chart) {
  Svg svg;
  const Scale scale(axis_end(chart) * 1.02);
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
  if (chart.limit > 0) draw_limit(svg, chart, scale, top, bottom);
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    draw_note(svg, chart, scale, chart.bars[i], row(i));
  }
  return svg.finish(chart.text, bottom + 26);
}

}  // namespace zl
