#include "gui/plot/decimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zl::gui {

QPolygonF decimate(const std::vector<double>& x, const std::vector<double>& y, std::size_t begin,
                   std::size_t end, const Scale& scale, bool steps) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  QPolygonF line;
  for (std::size_t i = begin; i < end;) {
    const double at = scale.x(x[i]), column = std::floor(at);
    double low = kInfinity, high = -kInfinity, first = NAN, last = NAN;
    for (; i < end && scale.x(x[i]) < column + 1; ++i) {
      if (!std::isfinite(y[i])) continue;
      if (std::isnan(first)) first = y[i];
      last = y[i];
      low = std::min(low, y[i]);
      high = std::max(high, y[i]);
    }
    if (std::isnan(first)) continue;
    if (steps && !line.isEmpty()) line << QPointF(at, line.back().y());
    for (const double value : {first, low, high, last}) {
      const QPointF next(at, scale.y(value));
      if (line.isEmpty() || line.back() != next) line << next;
    }
  }
  return line;
}

}  // namespace zl::gui
