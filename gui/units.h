// How numbers read in the dashboard: bytes in GiB or GB, times, shares, counts.
// Ownership: values; the byte unit is one setting of the program. Threads: GUI thread.
#pragma once

#include <QString>
#include <vector>

#include "results/format.h"

namespace zl::gui {

enum class ByteUnit : std::uint8_t { binary, decimal };  // GiB, GB

ByteUnit byte_unit();
void set_byte_unit(ByteUnit unit);

QString bytes_text(double bytes);  // "18.77 GiB" or "20.16 GB"
// Of times of the simulator.
inline double to_seconds(std::int64_t picoseconds) {
  return static_cast<double>(picoseconds) * 1e-12;
}
QString seconds_text(double seconds);     // "758.868 ms"
QString rough_time_text(double seconds);  // "40 s", "9 min": of what is still to come
QString share_text(double fraction);      // "4.2 %"
QString count_text(double count);         // "272 530", up to six digits after the point
QString value_text(double value, Unit unit);
QString tick_text(double value, Unit unit);  // without trailing zeros: "50 GiB", "0"
// A time of an axis whose ticks are `step` seconds apart and whose largest is `most`: one unit for
// all of them, and as many digits as tell two neighbours apart.
QString time_tick_text(double seconds, double step, double most);
QString cell_text(const Cell& cell, Unit unit);

// The step between axis ticks, at most `most` of them up to `maximum`: 1, 2 or 5 times a power of
// ten, for binary bytes of a power of 1024.
double tick_step(double maximum, int most, Unit unit);

// The multiples of `step` from `from` to `to`; none where numbers have no such steps, or too many.
std::vector<double> ticks(double from, double to, double step);
// Those of an axis that has room for about `most`; one alone says nothing of the scale.
std::vector<double> axis_ticks(double from, double to, int most, Unit unit);

}  // namespace zl::gui
