// Charts as SVG elements for a page that brings their style and hatches: see svg_hatches() and the
// classes of report_html.cpp.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/format.h"

namespace zl {

// Series repeat after this many.
inline constexpr std::size_t kSeries = 8;

struct ChartText {
  std::string title;        // accessible name
  std::string description;  // what a reader who cannot see it needs to know
};

struct ChartBar {
  std::string label;
  std::vector<double> values;  // stacked, one per series
  double low = 0, high = 0;    // error bar around the whole; both 0: none
  double mark = 0;             // a diamond; 0: none
  std::string note;            // after the bar, in place of its total
  bool bad = false;            // the note is a warning
};

struct BarChart {
  ChartText text;
  Unit unit = Unit::none;
  std::vector<std::string> series;
  std::vector<ChartBar> bars;
  double limit = 0;  // a vertical line; 0: none
  std::string limit_text;
  std::string mark_text;  // what the diamonds are; empty: there are none
};

struct ChartSpan {
  double start = 0, end = 0;  // seconds
  std::size_t series = 0;
  std::string text = {};  // in the span, where there is room for it
};

struct ChartLane {
  std::string name;
  std::vector<ChartSpan> spans;  // in order of time
};

struct LaneChart {
  ChartText text;
  double duration = 0;  // seconds; spans lie in [0, duration]
  std::vector<std::string> series;
  std::vector<ChartLane> lanes;
};

struct ChartCurve {
  std::string name;
  std::int64_t first = 1;                // step of the first value
  std::vector<double> values;            // one a step; what is not finite is a gap
  std::vector<std::int64_t> steps = {};  // of the values, ascending, where they are not one a step
};

struct CurveChart {
  ChartText text;
  std::vector<ChartCurve> curves;
};

// Bar lengths are proportional to their values; the axis begins at 0. A limit far beyond all bars
// is named at the end of the axis; a bar that is a warning and far longer than all else is cut off,
// with two strokes across it.
std::string svg_bars(const BarChart& chart);

// Neighbours of one series closer than a pixel are drawn as one block, as high as the share of its
// width that they fill: areas are proportional to busy time. Spans with a text have edges.
std::string svg_lanes(const LaneChart& chart);

// Values over steps; on a logarithmic axis, and said, where a linear one would squeeze them. Of
// more steps than the plot has columns each shows its lowest and highest value.
std::string svg_curves(const CurveChart& chart);

// The fills "url(#hatch-0)" ... of the series: a colour and a pattern each, so that colour is never
// the only difference. Once per page.
std::string svg_hatches();

// Their style: a hatch on a screen; on paper, where every hatch becomes a font, the colours alone,
// with lines of its own in each bar. Curves have a colour and a dash each.
std::string svg_style();

}  // namespace zl
