// A curve as the polyline of its pixels: first, lowest, highest and last point of each column.
// Ownership: values. Threads: pure function.
#pragma once

#include <QPolygonF>
#include <cstddef>
#include <vector>

namespace zl::gui {

// From values to pixels: x * x_scale + x_offset, y likewise.
struct Scale {
  double x_offset = 0, x_scale = 1, y_offset = 0, y_scale = 1;
  double x(double value) const { return value * x_scale + x_offset; }
  double y(double value) const { return value * y_scale + y_offset; }
};

// Points [begin, end) of the curve; x never decreases, values that are not finite are left out.
// `steps`: y holds until the next x.
QPolygonF decimate(const std::vector<double>& x, const std::vector<double>& y, std::size_t begin,
                   std::size_t end, const Scale& scale, bool steps);

}  // namespace zl::gui
