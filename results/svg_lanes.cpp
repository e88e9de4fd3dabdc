#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "results/svg_parts.h"

namespace zl {
namespace {

constexpr double kRow = 34;
constexpr double kBar = 26;
// Pixels: gaps that nobody sees, gaps within a block, and how wide such a block may become.
constexpr double kNoGap = 0.05;
constexpr double kGap = 0.7;
constexpr double kBlock = 4;

using Paths = std::map<std::size_t, std::string>;  // by series

// Neighbours as one column of rectangles, each as high as the share of the width that its series
// fills.
class Block {
 public:
  // False: too far from what it has, or too much of it.
  bool add(double begin, double end, std::size_t series) {
    const double gap = begin - end_;
    const bool continues = gap <= kNoGap && busy_.size() == 1 && busy_.count(series) == 1;
    const bool small = gap <= kGap && end - begin_ < kBlock;
    if (!busy_.empty() && !continues && !small) return false;
    if (busy_.empty()) begin_ = begin;
    busy_[series] += end - begin;
    end_ = std::max(end_, end);
    return true;
  }

  void draw(double bottom, Paths& paths) const {
    const double width = std::max(end_ - begin_, kGap / 2);
    for (const auto& [series, busy] : busy_) {
      const double height = kBar * std::min(1.0, busy / width);
      bottom -= height;
      paths[series] += fmt::format("M{:.1f} {:.1f}h{:.2f}v{:.1f}h-{:.2f}z", begin_, bottom, width,
                                   height, width);
    }
  }

 private:
  double begin_ = 0, end_ = 0;
  std::map<std::size_t, double> busy_;
};

// What a span says of itself; of neighbours that say nothing the edges would only be in the way.
void draw_text(Svg& svg, const Scale& scale, const ChartSpan& span, double top) {
  const double begin = scale.x(span.start), end = scale.x(span.end);
  if (span.text.empty() || end - begin < Svg::width(span.text)) return;
  for (const double x : {begin, end}) svg.line(x, top, x, top + kBar, "edge");
  svg.text((begin + end) / 2, top + kBar / 2 + 4, span.text, Svg::Anchor::middle);
}

// One path per series: thousands of spans stay small.
void draw_lane(Svg& svg, const Scale& scale, const ChartLane& lane, double top) {
  Paths paths;
  Block block;
  for (const ChartSpan& span : lane.spans) {
    if (span.end <= span.start) continue;
    const double begin = scale.x(span.start), end = scale.x(span.end);
    if (block.add(begin, end, span.series)) continue;
    block.draw(top + kBar, paths);
    block = {};
    block.add(begin, end, span.series);
  }
  block.draw(top + kBar, paths);
  for (const auto& [series, path] : paths) {
    svg.append(fmt::format("<path d=\"{}\" class=\"s{}\"/>\n", path, series % kSeries));
  }
  for (const ChartSpan& span : lane.spans) draw_text(svg, scale, span, top);
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
  const Scale scale(chart.duration);
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
