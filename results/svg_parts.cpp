#include "results/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "results/xml.h"

namespace zl {
namespace {

constexpr double kMostTicks = 20;
constexpr double kCharacter = 6.8;  // average advance at the page's 12 px

std::size_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

// The bytes of its first `count` characters.
std::size_t front_of(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size() && seen < count; ++seen) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  }
  return end;
}

// In the middle: what tells names apart is at their ends.
std::string cut_short(std::string_view text, std::size_t most) {
  const std::size_t count = characters(text);
  if (count <= most) return std::string(text);
  const std::size_t front = front_of(text, most / 3);
  const std::size_t back = front_of(text, count - (most - most / 3 - 1));
  return std::string(text.substr(0, front)) + "…" + std::string(text.substr(back));
}

// Of 1, 2, 5 times a power of ten (bytes: of the powers of two) the smallest that makes few steps.
double round_step(double most, Unit unit) {
  if (unit == Unit::bytes) return std::exp2(std::ceil(std::log2(most / 8)));
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (most / (factor * power) <= 5) return factor * power;
  }
  return 10 * power;
}

// Round values of one axis share a unit, so their zeros say nothing.
std::string tick_text(double value, Unit unit) {
  if (value == 0) return "0";
  std::string text = readable(value, unit);
  const std::size_t point = text.find('.'), space = text.find(' ');
  if (point == std::string::npos || space == std::string::npos) return text;
  std::string number = text.substr(0, space);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number + text.substr(space);
}

// Lines at these distances across a bar, as few as tell the series apart: "/", "\\", "|", "-".
std::string paper_hatch(double x, double y, double width, double height, std::size_t series) {
  constexpr double kApart = 8;
  constexpr const char* kDirections[kSeries] = {"", "/", "\\", "|", "-", "/\\", "|-", ""};
  std::string path;
  for (const char* direction = kDirections[series]; *direction != 0; ++direction) {
    if (*direction == '-') {
      path += fmt::format("M{:.1f} {:.1f}h{:.1f}", x, y + height / 2, width);
      continue;
    }
    const double slope = *direction == '|' ? 0 : height;
    for (double at = kApart / 2; at + slope <= width; at += kApart) {
      path += *direction == '/'
                  ? fmt::format("M{:.1f} {:.1f}l{:.0f}-{:.0f}", x + at, y + height, slope, height)
                  : fmt::format("M{:.1f} {:.1f}l{:.0f} {:.0f}", x + at, y, slope, height);
    }
  }
  return path;
}

}  // namespace

double Svg::width(std::string_view text) {
  return kCharacter * static_cast<double>(characters(text));
}

void Svg::label(double y, std::string_view label) {
  const auto most = static_cast<std::size_t>((kChartLeft - 14) / kCharacter);
  text(kChartLeft - 8, y, cut_short(label, most), Anchor::end);
}

void Svg::text(double x, double y, std::string_view text, Anchor anchor, const char* style) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y,
                       kAnchors[static_cast<std::size_t>(anchor)], style, xml_escaped(text)) +
           "\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const char* style) {
  body_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1,
                       y1, x2, y2, style) +
           "\n";
}

void Svg::rectangle(double x, double y, double width, double height, std::size_t series) {
  series %= kSeries;
  body_ +=
      fmt::format(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" class="bar s{}"/>)",
                  x, y, width, height, series) +
      "\n";
  const std::string lines = paper_hatch(x, y, width, height, series);
  if (!lines.empty()) body_ += "<path d=\"" + lines + "\" class=\"paper\"/>\n";
}

void Svg::diamond(double x, double y) {
  body_ += fmt::format(R"(<path d="M{:.1f} {:.1f}l6 6-6 6-6-6z" class="mark"/>)", x, y - 6) + "\n";
}

void Svg::axis(const Scale& scale, double top, double bottom, Unit unit) {
  const double step = round_step(scale.most, unit);
  const int ticks = static_cast<int>(std::min(scale.most / step * (1 + 1e-9), kMostTicks));
  for (int i = 0; i <= ticks; ++i) {
    const double value = i * step;
    line(scale.x(value), top, scale.x(value), bottom, "grid");
    text(scale.x(value), bottom + 16, tick_text(value, unit), Anchor::middle, "faint");
  }
}

namespace {

constexpr double kLegendRow = 20;

// Where the entries of a legend go: from left to right, in as many rows as it takes.
class LegendRows {
 public:
  LegendRows(double left, double y) : left_(left), x_(left), y_(y) {}
  // The x of an entry with so many characters; y() is its row.
  double place(std::size_t count) {
    const double width = 26 + kCharacter * static_cast<double>(count) + 14;
    if (x_ > left_ && x_ + width > kChartWidth) {
      x_ = left_;
      y_ += kLegendRow;
    }
    return std::exchange(x_, x_ + width);
  }
  double y() const { return y_; }

 private:
  double left_, x_, y_;
};

}  // namespace

double Svg::legend(double y, const std::vector<std::string>& series, const std::string& mark) {
  LegendRows rows(kChartLeft, y);
  const auto place = [&](const std::string& name) {
    const double x = rows.place(characters(name));
    text(x + 18, rows.y() + 11, name, Anchor::start);
    return x;
  };
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].empty()) continue;
    const double at = place(series[i]);
    rectangle(at, rows.y(), 13, 13, i);
  }
  if (!mark.empty()) {
    const double at = place(mark);
    diamond(at + 7, rows.y() + 7);
  }
  return rows.y() + kLegendRow + 6;
}

double Svg::curve_legend(double y, const std::vector<std::string>& curves, double left) {
  LegendRows rows(left, y);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double x = rows.place(characters(curves[i]) + 2);
    append(fmt::format("<path d=\"M{:.1f} {:.1f}h24\" class=\"curve c{}\"/>\n", x, rows.y() + 7,
                       i % kSeries));
    text(x + 30, rows.y() + 11, curves[i], Anchor::start);
  }
  return rows.y() + kLegendRow + 6;
}

std::string Svg::finish(const ChartText& text, double height) const {
  const std::string title = xml_escaped(text.title);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "class=\"chart\" aria-label=\"{}\">\n<title>{}</title>\n<desc>{}</desc>\n{}</svg>\n",
      kChartWidth, height, title, title, xml_escaped(text.description), body_);
}

}  // namespace zl
