// What the charts share: the frame with its legend, text and axes.
// Ownership: an Svg owns its text. Threads: one thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "results/svg.h"

namespace zl {

inline constexpr double kChartWidth = 960;
inline constexpr double kChartLeft = 210;   // of the plot area; labels are beside it
inline constexpr double kChartRight = 830;  // notes are beside it
inline constexpr double kChartTop = 10;

// What the plot area shows from left to right.
struct Scale {
  // `most`: at the right edge, of which numbers that no chart can show are 1; the left edge is 0.
  explicit Scale(double wanted) : most(wanted > 1e-300 && wanted < 1e300 ? wanted : 1) {}

  // Within the plot area, whatever the value.
  double x(double value) const {
    const double share = value > 0 ? std::min(value / most, 1.0) : 0.0;
    return kChartLeft + share * (kChartRight - kChartLeft);
  }

  const double most;
};

class Svg {
 public:
  enum class Anchor : std::uint8_t { start, middle, end };

  static double width(std::string_view text);  // about, in pixels

  // Shortened to what fits beside the plot area.
  void label(double y, std::string_view text);
  void text(double x, double y, std::string_view text, Anchor anchor, const char* style = "");
  void line(double x1, double y1, double x2, double y2, const char* style);
  void rectangle(double x, double y, double width, double height, std::size_t series);
  void diamond(double x, double y);
  // Grid lines over [top, bottom] at round values, named below.
  void axis(const Scale& scale, double top, double bottom, Unit unit);
  // Swatches of the series that have a name and, if it has one, the diamond, from `y` down; returns
  // the y below.
  double legend(double y, const std::vector<std::string>& series, const std::string& mark);

  // The same for curves, from `left` on; lines in place of swatches.
  double curve_legend(double y, const std::vector<std::string>& curves, double left);

  void append(std::string_view markup) { body_ += markup; }
  std::string finish(const ChartText& text, double height) const;

 private:
  std::string body_;
};

}  // namespace zl
