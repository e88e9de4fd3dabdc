#include "gui/units.h"

#include <QLocale>
#include <algorithm>
#include <array>
#include <cmath>

namespace zl::gui {
namespace {

ByteUnit& setting() {
  static ByteUnit unit = ByteUnit::binary;
  return unit;
}

double byte_base() { return byte_unit() == ByteUnit::binary ? 1024 : 1000; }

constexpr std::size_t kByteUnits = 6;
QString byte_suffix(std::size_t power) {
  static constexpr std::array<const char*, kByteUnits> kBinary{" B",   " KiB", " MiB",
                                                               " GiB", " TiB", " PiB"};
  static constexpr std::array<const char*, kByteUnits> kDecimal{" B",  " kB", " MB",
                                                                " GB", " TB", " PB"};
  return byte_unit() == ByteUnit::binary ? kBinary[power] : kDecimal[power];
}

// With thin spaces between thousands.
QString grouped(double value, int digits) {
  QLocale locale = QLocale::c();
  locale.setNumberOptions(QLocale::DefaultNumberOptions);
  return locale.toString(value, 'f', digits).replace(',', QChar(0x2009));
}

// 1, 2 or 5 times a power of ten, at least `step`.
double nice_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

QString without_trailing_zeros(QString text) {
  if (!text.contains('.')) return text;
  while (text.endsWith('0')) text.chop(1);
  if (text.endsWith('.')) text.chop(1);
  return text;
}

}  // namespace

ByteUnit byte_unit() { return setting(); }
void set_byte_unit(ByteUnit unit) { setting() = unit; }

QString bytes_text(double bytes) {
  std::size_t power = 0;
  double value = bytes;
  while (std::abs(value) >= byte_base() && power + 1 < kByteUnits) {
    value /= byte_base();
    ++power;
  }
  return QString::number(value, 'f', power == 0 ? 0 : 2) + byte_suffix(power);
}

QString seconds_text(double seconds) {
  return QString::fromStdString(readable(seconds, Unit::seconds));
}

QString rough_time_text(double seconds) {
  constexpr double kMinute = 60;
  if (seconds < 2 * kMinute) return QString("%1 s").arg(qRound(seconds));
  return QString("%1 min").arg(qRound(seconds / kMinute));
}

QString share_text(double fraction) {
  return QString::fromStdString(readable(fraction, Unit::fraction));
}

QString count_text(double count) {
  if (!std::isfinite(count)) return QString::number(count);
  if (std::abs(count) >= 1e15) return QString::number(count, 'g', 4);
  const int digits = std::abs(count) >= 1000 || count == std::round(count) ? 0 : 4;
  return without_trailing_zeros(grouped(count, digits));
}

QString value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return bytes_text(value);
    case Unit::seconds:
      return seconds_text(value);
    case Unit::fraction:
      return share_text(value);
    case Unit::flop_rate:
    case Unit::byte_rate:
      return QString::fromStdString(readable(value, unit));
    case Unit::none:
      break;
  }
  return count_text(value);
}

QString tick_text(double value, Unit unit) {
  if (value == 0) return "0";
  const QString text = value_text(value, unit);
  const auto space = text.indexOf(' ');
  if (space < 0) return without_trailing_zeros(text);
  return without_trailing_zeros(text.left(space)) + text.mid(space);
}

QString time_tick_text(double seconds, double step, double most) {
  if (std::abs(seconds) < step / 2) return "0";
  const bool whole = most >= 1, milli = most >= 1e-3;
  const double unit = whole ? 1 : milli ? 1e-3 : 1e-6;
  const double resolved = std::ceil(-std::log10(step / unit) - 1e-9);
  const int digits = static_cast<int>(std::clamp(resolved, 0.0, 12.0));
  return grouped(seconds / unit, digits) + (whole ? " s" : milli ? " ms" : " us");
}

QString cell_text(const Cell& cell, Unit unit) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return value_text(static_cast<double>(*whole), unit);
  }
  if (const auto* number = std::get_if<double>(&cell)) return value_text(*number, unit);
  return QString::fromStdString(readable(cell, unit));
}

double tick_step(double maximum, int most, Unit unit) {
  if (maximum <= 0 || most < 1) return 1;
  double base = 1;
  if (unit == Unit::bytes) {
    while (maximum / base >= byte_base()) base *= byte_base();
  }
  const double step = nice_step(maximum / base / most) * base;
  return unit == Unit::bytes ? std::max(1.0, step) : step;
}

std::vector<double> ticks(double from, double to, double step) {
  constexpr double kMost = 1000;
  const double first = std::ceil(from / step - 1e-9), last = to / step + 1e-9;
  std::vector<double> all;
  if (!(std::abs(first) < 0x1p53 && last - first < kMost)) return all;
  for (double index = first; index <= last; ++index) all.push_back(index * step);
  return all;
}

std::vector<double> axis_ticks(double from, double to, int most, Unit unit) {
  constexpr int kMore = 3;
  std::vector<double> all;
  for (int count = most; all.size() < 2 && count <= most + kMore; ++count) {
    all = ticks(from, to, tick_step(to - from, count, unit));
  }
  return all;
}

}  // namespace zl::gui
