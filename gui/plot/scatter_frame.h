// Where values of a scatter plot are, while it is painted.
// Ownership: a value. Threads: GUI thread.
#pragma once

#include <algorithm>
#include <cmath>

#include "gui/plot/scatter_plot.h"
#include "gui/units.h"

namespace zl::gui {

inline constexpr double kSymbolRadius = 6;  // pixels

inline QString label_of(const ScatterPoint& point) {
  return point.feasible ? point.label : QObject::tr("✗ %1").arg(point.label);
}

struct ScatterPlot::Frame {
  QRectF box;
  double x_min = 0, x_max = 1, y_min = 0, y_max = 1, line = 0;
  bool x_log = false, y_log = false;

  static double share(double value, double from, double to, bool logarithmic) {
    if (!logarithmic) return (value - from) / (to - from);
    return std::log(std::max(value, from) / from) / std::log(to / from);
  }
  QPointF at(double x, double y) const {
    return {box.left() + share(x, x_min, x_max, x_log) * box.width(),
            box.bottom() - share(y, y_min, y_max, y_log) * box.height()};
  }
  // At most `most` of them: a step apart, or the 1, 2 and 5 of each power of ten.
  static std::vector<double> ticks(double from, double to, int most, Unit unit, bool logarithmic) {
    std::vector<double> all;
    if (!logarithmic) {
      return gui::ticks(0, to, tick_step(to, most, unit));
    }
    if (unit == Unit::bytes && byte_unit() == ByteUnit::binary) {
      const double doublings = std::log2(to / from);
      const double factor = std::exp2(std::max(1.0, std::ceil(doublings / most)));
      double first = 1;
      while (first < from) first *= 2;
      for (double value = first; value <= to; value *= factor) all.push_back(value);
      return all;
    }
    const bool few = std::log10(to / from) * 3 > most;
    for (double power = std::pow(10, std::floor(std::log10(from))); power > 0 && power <= to;
         power *= 10) {
      for (const double value : {power, 2 * power, 5 * power}) {
        if (value >= from && value <= to && !(few && value > power)) all.push_back(value);
      }
    }
    return all;
  }
};

}  // namespace zl::gui
