// Charts: lengths are proportional to values; XML is well-formed whatever is in a label.
#include "results/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "results/xml.h"
#include "tests/results/xml_reader.h"

namespace zl::test {
namespace {

std::vector<double> widths(const Element& svg, const std::string& series) {
  std::vector<double> out;
  for (const Element* bar : svg.all("rect")) {
    if (bar->attribute("class") == "bar " + series && bar->attribute("height") == "20.0") {
      out.push_back(std::stod(bar->attribute("width")));
    }
  }
  return out;
}

BarChart two_bars() {
  BarChart chart;
  chart.text = {"title", "what it shows"};
  chart.series = {"first", "second", "never"};
  chart.bars = {{"a", {1, 3}, 0, 0, 0, "", false}, {"b", {2, 0}, 1.5, 2.5, 0, "", false}};
  return chart;
}

TEST(Svg, BarsAreAsLongAsTheirValues) {
  const Element svg = XmlReader::read(svg_bars(two_bars()));
  const auto first = widths(svg, "s0"), second = widths(svg, "s1");
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 1u) << "no bar for nothing";
  EXPECT_NEAR(first[1] / first[0], 2, 1e-3);
  EXPECT_NEAR(second[0] / first[0], 3, 1e-3);
}

TEST(Svg, ErrorBarSpansItsInterval) {
  const Element svg = XmlReader::read(svg_bars(two_bars()));
  const double unit = widths(svg, "s0")[0];
  for (const Element* line : svg.all("line")) {
    const double length = std::stod(line->attribute("x2")) - std::stod(line->attribute("x1"));
    if (line->attribute("class") != "whisker" || length == 0) continue;
    EXPECT_NEAR(length, unit, 0.2);
  }
}

TEST(Svg, TheLimitIsOnTheScaleOfTheBars) {
  BarChart chart = two_bars();
  chart.limit = 8;
  chart.limit_text = "capacity";
  const Element svg = XmlReader::read(svg_bars(chart));
  const double unit = widths(svg, "s0")[0];
  double zero = 0, limit = 0;
  for (const Element* each : svg.all("rect")) {
    if (each->attribute("height") == "20.0" && zero == 0) zero = std::stod(each->attribute("x"));
  }
  for (const Element* line : svg.all("line")) {
    if (line->attribute("class") == "limit") limit = std::stod(line->attribute("x1"));
  }
  EXPECT_NEAR(limit - zero, 8 * unit, 0.2);
}

TEST(Svg, ALimitFarBeyondTheBarsLeavesThemTheirRoom) {
  BarChart chart = two_bars();
  chart.limit = 4000;
  chart.limit_text = "capacity 4000";
  const std::string svg = svg_bars(chart);
  EXPECT_NEAR(widths(XmlReader::read(svg), "s1")[0], 620 * 3 / (4 * 1.02), 0.1);
  EXPECT_NE(svg.find("capacity 4000, beyond this axis"), std::string::npos);
  EXPECT_EQ(svg.find("\"limit\""), std::string::npos);
}

TEST(Svg, AGiantThatDoesNotFitIsCutOff) {
  BarChart chart = two_bars();
  chart.bars.push_back({"giant", {4000}, 0, 0, 0, "4000", true});
  const Element svg = XmlReader::read(svg_bars(chart));
  EXPECT_NEAR(widths(svg, "s1")[0], 620 * 3 / (4 * 1.3 * 1.02), 0.1);
  EXPECT_NEAR(widths(svg, "s0").back(), 620, 0.1) << "to the end of the axis";
  std::size_t cuts = 0;
  for (const Element* line : svg.all("line")) cuts += line->attribute("class") == "cut";
  EXPECT_EQ(cuts, 2u);
}

TEST(Svg, TheLimitCrossesNoNumber) {
  BarChart chart = two_bars();
  chart.bars[0].note = "a long note of what it is";
  chart.limit = 4.5;
  const Element svg = XmlReader::read(svg_bars(chart));
  double line = 0, note = 0;
  for (const Element* each : svg.all("line")) {
    if (each->attribute("class") == "limit") line = std::stod(each->attribute("x1"));
  }
  for (const Element* each : svg.all("text")) {
    if (each->text == chart.bars[0].note) note = std::stod(each->attribute("x"));
  }
  EXPECT_NEAR(note, line + 6, 0.1);
}

TEST(Svg, LongLabelsKeepTheEndsThatTellThemApart) {
  BarChart chart = two_bars();
  chart.bars[0].label = "zero-2 (as torch-fsdp2, bf16, accumulation 1), sim";
  chart.bars[1].label = "zero-2 (as torch-fsdp2, bf16, accumulation 8), sim";
  const std::string svg = svg_bars(chart);
  EXPECT_NE(svg.find(">zero-2 (a…cumulation 1), sim<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">zero-2 (a…cumulation 8), sim<"), std::string::npos);
}

TEST(Svg, TheLegendNamesWhatIsShown) {
  const std::string svg = svg_bars(two_bars());
  EXPECT_NE(svg.find(">second<"), std::string::npos);
  EXPECT_EQ(svg.find(">never<"), std::string::npos);
}

TEST(Svg, AnEmptyChartIsStillOne) {
  EXPECT_EQ(XmlReader::read(svg_bars({})).name, "svg");
  EXPECT_EQ(XmlReader::read(svg_lanes({})).name, "svg");
}

// Each of these once drew grid lines without end.
TEST(Svg, NumbersThatNoChartCanShowAreStillOne) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Unit unit : {Unit::none, Unit::bytes, Unit::seconds}) {
    for (const double value :
         {1e308, 1.7e308, kInfinity, -kInfinity, std::nan(""), 5e-324, 1e-310, 9.3e18, -1.0, 0.0}) {
      BarChart chart = two_bars();
      chart.unit = unit;
      chart.bars[0].values = {value, 1};
      chart.bars[0].high = chart.bars[1].mark = value;
      LaneChart lanes;
      lanes.duration = value;
      for (const std::string& svg : {svg_bars(chart), svg_lanes(lanes)}) {
        const Element root = XmlReader::read(svg);
        EXPECT_LT(svg.size(), 20'000u) << value;
        for (const Element* line : root.all("line")) {
          EXPECT_TRUE(std::isfinite(std::stod(line->attribute("x1")))) << svg;
          EXPECT_LE(std::stod(line->attribute("x2")), 960) << svg;
        }
      }
    }
  }
}

TEST(Svg, ThousandsOfSpansStaySmall) {
  LaneChart chart;
  chart.text = {"t", "d"};
  chart.duration = 1;
  chart.series = {"work"};
  ChartLane lane{"compute", {}};
  constexpr int kSpans = 100000;
  for (int i = 0; i < kSpans; ++i) lane.spans.push_back({i * 1e-5, i * 1e-5 + 9e-6, 0});
  chart.lanes = {lane};
  const std::string svg = svg_lanes(chart);
  EXPECT_LT(svg.size(), 20000u);
  // Drawn as one block over the whole width.
  const Element root = XmlReader::read(svg);
  EXPECT_NE(root.all("path").at(0)->attribute("d").find("h620.00"), std::string::npos);
}

// Of two boxes the second is too narrow for its number.
TEST(Svg, SpansSayTheirTextWhereThereIsRoom) {
  LaneChart chart;
  chart.text = {"t", "d"};
  chart.duration = 1;
  chart.series = {"forward"};
  chart.lanes = {{"stage 0", {{0, 0.1, 0, "3"}, {0.1, 0.105, 0, "12·"}, {0.2, 0.3, 0}}}};
  const Element root = XmlReader::read(svg_lanes(chart));
  std::vector<double> edges;
  for (const Element* line : root.all("line")) {
    if (line->attribute("class") == "edge") edges.push_back(std::stod(line->attribute("x1")));
  }
  EXPECT_EQ(edges, (std::vector<double>{210, 272}));
  int threes = 0, twelves = 0;
  for (const Element* text : root.all("text")) {
    threes += text->text == "3" && text->attribute("x") == "241.0" ? 1 : 0;
    twelves += text->text == "12·" ? 1 : 0;
  }
  EXPECT_EQ(threes, 1);
  EXPECT_EQ(twelves, 0);
}

// The area of a path of rectangles "Mx yhWvHh-Wz".
double area(const std::string& path) {
  double sum = 0;
  for (std::size_t at = 0; (at = path.find('h', at)) != std::string::npos;
       at = path.find('z', at)) {
    double width = 0, height = 0;
    EXPECT_EQ(std::sscanf(path.c_str() + at, "h%lfv%lfh", &width, &height), 2);
    sum += width * height;
  }
  return sum;
}

TEST(Svg, ShortSpansAreDrawnAsHighAsTheyFillTheTime) {
  LaneChart chart;
  chart.text = {"t", "d"};
  chart.duration = 1;
  chart.series = {"dense", "sparse", "between"};
  ChartLane lane{"compute", {{0, 0.5, 0}}};
  for (int i = 0; i < 1000; ++i) {
    const double start = 0.5 + i * 5e-4;
    lane.spans.push_back({start, start + 5e-5, 1});
    lane.spans.push_back({start + 1e-4, start + 2e-4, 2});
  }
  chart.lanes = {lane};
  const Element root = XmlReader::read(svg_lanes(chart));
  const auto paths = root.all("path");
  ASSERT_EQ(paths.size(), 3u);
  const double dense = area(paths[0]->attribute("d")), sparse = area(paths[1]->attribute("d"));
  EXPECT_NEAR(dense, 310 * 26, 1);
  EXPECT_NEAR(sparse / dense, 0.1, 0.005) << "busy for a tenth of the time";
  EXPECT_NEAR(area(paths[2]->attribute("d")) / dense, 0.2, 0.01);
}

TEST(Xml, EscapesMarkupAndReplacesWhatIsNoUtf8) {
  EXPECT_EQ(xml_escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(xml_escaped("ü€𝄞"), "ü€𝄞");
  EXPECT_EQ(xml_escaped(std::string("a\0b\n\x7f", 5)), "a b  ");
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(xml_escaped("\xc0\xaf"), replacement + replacement) << "overlong";
  EXPECT_EQ(xml_escaped("\xed\xa0\x80"), replacement + replacement + replacement) << "surrogate";
  EXPECT_EQ(xml_escaped("\xe2\x82"), replacement + replacement) << "cut short";
  EXPECT_EQ(xml_escaped("\xf5\x80"), replacement + replacement);
}

}  // namespace
}  // namespace zl::test
