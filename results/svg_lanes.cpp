#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "results/svg_parts.h"

namespace zl {
namespace {

constexpr double kRow = 34;
constexpr double kBar = 26;
constexpr double kPixel = 0.7;

// One path per series: thousands of spans stay small.
void draw_lane(Svg& svg, const Scale& scale, const ChartLane& lane, double top) {
  struct Drawn {
    double begin = 0, end = -1;
    std::string path;
    void close(double y) {
      if (end < begin) return;
      const double width = std::max(end - begin, kPixel / 2);
      path += fmt::format("M{:.1f} {:.1f}h{:.2f}v{}h-{:.2f}z", begin, y, width, kBar, width);
    }
  };
  std::map<std::size_t, Drawn> series;
  for (const ChartSpan& span : lane.spans) {
    const double begin = scale.x(span.start), end = scale.x(span.end);
    Drawn& drawn = series[span.series];
    if (drawn.end < drawn.begin || begin > drawn.end + kPixel) {
      drawn.close(top);
      drawn.begin = begin;
    }
    drawn.end = std::max(drawn.end, end);
  }
  for (auto& [index, drawn] : series) {
    drawn.close(top);
    svg.append(fmt::format("<path d=\"{}\" class=\"s{}\"/>\n", drawn.path, index % kSeries));
  }
}

// Names of the series that some span has; the others are blank.
std::vector<std::string> shown_series(const LaneChart& chart) {
  std::vector<std::string> names(chart.series.size());
  for (const ChartLane& lane : chart.lanes) {
    for (const ChartSpan& span : lane.spans) names[span.series] = chart.series[span.series];
  }
  return names;
}

}  // namespace

std::string svg_lanes(const LaneChart& chart) {
  Svg svg;
  const Scale scale{chart.duration > 0 ? chart.duration : 1};
  const double top = svg.legend(kChartTop, shown_series(chart), "");
  const double bottom = top + kRow * static_cast<double>(chart.lanes.size());
  svg.axis(scale, top, bottom, Unit::seconds);
  for (std::size_t i = 0; i < chart.lanes.size(); ++i) {
    const double y = top + kRow * static_cast<double>(i) + (kRow - kBar) / 2;
    svg.label(y + kBar / 2 + 4, chart.lanes[i].name);
    draw_lane(svg, scale, chart.lanes[i], y);
  }
  return svg.finish(chart.text, bottom + 26);
}

}  // namespace zl
