// Properties of the charts: what decimation keeps, the timeline, files, units, colours.
#include <gtest/gtest.h>

#include <QFile>
#include <cmath>
#include <random>

#include "core/base/error.h"
#include "gui/plot/bar_plot.h"
#include "gui/plot/decimate.h"
#include "gui/plot/export.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/timeline_plot.h"
#include "gui/theme.h"
#include "gui/units.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

TEST(Decimate, KeepsTheExtremesOfEveryColumn) {
  std::mt19937 random(1);
  std::normal_distribution<double> value(0, 10);
  std::vector<double> x, y;
  for (int i = 0; i < 100'000; ++i) {
    x.push_back(i);
    y.push_back(value(random));
  }
  const Scale scale{0, 0.005, 0, 1};  // 500 columns
  const QPolygonF line = decimate(x, y, 0, x.size(), scale, false);
  EXPECT_LE(line.size(), 4 * 501);
  double low = 0, high = 0;
  for (const QPointF& point : line) {
    low = std::min(low, point.y());
    high = std::max(high, point.y());
  }
  EXPECT_EQ(low, *std::min_element(y.begin(), y.end()));
  EXPECT_EQ(high, *std::max_element(y.begin(), y.end()));
}

TimelineData two_lanes(int spans) {
  TimelineData data;
  data.categories = {"forward", "backward"};
  data.describe = [](std::int32_t event) { return QString("op %1").arg(event); };
  data.lanes.resize(2);
  for (std::size_t lane = 0; lane < 2; ++lane) {
    data.lanes[lane].name = lane == 0 ? "compute" : "communication";
    for (int i = 0; i < spans; ++i) {
      data.lanes[lane].spans.push_back({i + 0.25 * double(lane), i + 0.5,
                                        std::int32_t(2 * i) + std::int32_t(lane),
                                        std::uint8_t(i % 2)});
    }
  }
  return data;
}

TEST(TimelinePlot, ZoomHasAHistoryAndKeysMove) {
  TimelinePlot plot("Timeline");
  plot.resize(800, 300);
  plot.set_data(two_lanes(100));
  plot.show();
  plot.grab();
  const auto whole = plot.visible();
  plot.zoom_to({10, 20});
  plot.zoom_to({12, 14});
  plot.zoom_back();
  EXPECT_EQ(plot.visible().from, 10);
  plot.zoom_forward();
  EXPECT_EQ(plot.visible().from, 12);
  plot.zoom_back();
  plot.zoom_back();
  EXPECT_EQ(plot.visible(), whole);
  QTest::keyClick(&plot, Qt::Key_W);
  EXPECT_LT(plot.visible().length(), whole.length());
  const double from = plot.visible().from;
  QTest::keyClick(&plot, Qt::Key_D);
  EXPECT_GT(plot.visible().from, from);
  QTest::keyClick(&plot, Qt::Key_0);
  EXPECT_EQ(plot.visible(), whole);
}

TEST(TimelinePlot, ArrowsSelectSpansAndSearchWraps) {
  TimelinePlot plot("Timeline");
  plot.resize(800, 300);
  plot.set_data(two_lanes(100));
  plot.show();
  plot.grab();
  std::int32_t event = -1;
  QObject::connect(&plot, &TimelinePlot::span_selected, &plot, [&](int e) { event = e; });
  QTest::keyClick(&plot, Qt::Key_Right);
  EXPECT_EQ(event, 0);
  QTest::keyClick(&plot, Qt::Key_Right);
  EXPECT_EQ(event, 2);
  QTest::keyClick(&plot, Qt::Key_Down);
  EXPECT_EQ(event, 3) << "the span of the other lane at the same time";
  EXPECT_TRUE(plot.find_next("op 150"));
  EXPECT_EQ(event, 150);
  EXPECT_TRUE(plot.find_next("op 4"));
  EXPECT_FALSE(plot.find_next("no such op"));
  QTest::keyClick(&plot, Qt::Key_M);
  ASSERT_TRUE(plot.measured());
  EXPECT_DOUBLE_EQ(plot.measured()->length(),
                   plot.data().lanes[plot.selected()->lane].spans[plot.selected()->span].end -
                       plot.data().lanes[plot.selected()->lane].spans[plot.selected()->span].start);
}

// Heights of the bands, from top to bottom, in which three quarters of the width have a colour of
// the first two series.
std::vector<int> full_bands(const QImage& image) {
  std::vector<int> heights;
  bool inside = false;
  for (int y = 0; y < image.height(); ++y) {
    int colored = 0;
    for (int x = 0; x < image.width(); ++x) {
      const QColor pixel = image.pixelColor(x, y);
      colored += pixel == series_color(0) || pixel == series_color(1);
    }
    const bool full = 4 * colored > 3 * image.width();
    if (full && !inside) heights.push_back(0);
    if (full) ++heights.back();
    inside = full;
  }
  return heights;
}

TEST(TimelinePlot, AMillionSpansArePainted) {
  TimelinePlot plot("Timeline");
  plot.resize(1200, 300);
  plot.set_data(two_lanes(500'000));
  const std::vector<int> lanes = full_bands(plot.grab().toImage());
  ASSERT_EQ(lanes.size(), 2u) << "so narrow that there is no gap between them";
  for (const int height : lanes) EXPECT_GT(height, 20);
  plot.zoom_to({250'000, 250'010});
  EXPECT_EQ(full_bands(plot.grab().toImage()).size(), 0u) << "ten spans with gaps";
  EXPECT_LE(plot.table().rows.size(), 25u) << "the table shows what is visible";
}

TEST(Export, EveryKindOfFileIsWrittenAndAnotherIsRefused) {
  const QTemporaryDir folder;
  BarPlot plot("Memory");
  plot.resize(700, 300);
  BarData data;
  data.rows_name = "strategy";
  data.series = {"parameter", "gradient"};
  data.unit = Unit::bytes;
  data.rows = {{"small", {1e9, 2e9}, {}, false}, {"large", {4e9, 8e9}, {}, false}};
  data.limit = 12e9;
  data.limit_text = "capacity";
  plot.set_data(data);
  const auto head = [&](const char* name, int bytes) {
    const QString path = folder.filePath(name);
    save_plot(plot, path);
    QFile file(path);
    EXPECT_TRUE(file.open(QIODevice::ReadOnly)) << name;
    return bytes > 0 ? file.read(bytes) : file.readAll();
  };
  EXPECT_EQ(head("a.png", 4), QByteArray("\x89PNG", 4));
  EXPECT_TRUE(head("a.svg", 0).contains("capacity")) << "text stays text";
  EXPECT_EQ(head("a.pdf", 5), "%PDF-");
  EXPECT_TRUE(head("a.csv", 0).startsWith("strategy,parameter,gradient,total\n"));
  EXPECT_TRUE(head("a.json", 1).startsWith("["));
  EXPECT_THROW(save_plot(plot, folder.filePath("a.docx")), Error);
  EXPECT_THROW(save_plot(plot, folder.filePath("no/such/folder/a.png")), Error);
}

TEST(Units, GibAndGbAndTicks) {
  EXPECT_EQ(bytes_text(80.0 * (1 << 30)), "80.00 GiB");
  set_byte_unit(ByteUnit::decimal);
  EXPECT_EQ(bytes_text(80e9), "80.00 GB");
  set_byte_unit(ByteUnit::binary);
  EXPECT_EQ(tick_text(50.0 * (1 << 30), Unit::bytes), "50 GiB");
  for (const double maximum : {0.003, 1.0, 7.0, 99.0, 12345.0, 3e11}) {
    for (const Unit unit : {Unit::none, Unit::bytes}) {
      if (unit == Unit::bytes && maximum < 10) continue;
      const double step = tick_step(maximum, 5, unit);
      EXPECT_LE(maximum / step, 5 + 1e-9) << maximum;
      EXPECT_GE(maximum / step, 1) << maximum;
    }
  }
}

TEST(Units, WhatIsStillToComeIsSecondsOrMinutes) {
  EXPECT_EQ(rough_time_text(0.4), "0 s");
  EXPECT_EQ(rough_time_text(119), "119 s");
  EXPECT_EQ(rough_time_text(120), "2 min");
  EXPECT_EQ(rough_time_text(565), "9 min");
}

// A loss from 3.2 to 5.6 had "4" alone on its axis.
TEST(Units, AnAxisHasTwoTicks) {
  EXPECT_EQ(axis_ticks(3.2, 5.6, 2, Unit::none), (std::vector<double>{4, 5}));
  EXPECT_EQ(axis_ticks(0, 10, 5, Unit::none), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_TRUE(axis_ticks(1, 1, 2, Unit::none).size() <= 1) << "no range, no scale";
}

// Adding up steps would never reach the end of these.
TEST(Units, TicksEndWhereNumbersHaveNoSuchSteps) {
  EXPECT_EQ(ticks(0.1, 1, 0.25), (std::vector<double>{0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(ticks(0, 0.3, 0.1).size(), 4u);
  EXPECT_EQ(ticks(1e16, 1e16 + 4, 2).size(), 3u);
  for (const double number : {1e16, 1e300, 1e308, 5e-324, double(INFINITY), double(NAN), 0.0}) {
    EXPECT_LE(ticks(number, number + 1, 0.5).size(), 1000u) << number;
    EXPECT_LE(ticks(0, number, tick_step(number, 5, Unit::none)).size(), 1000u) << number;
    EXPECT_LE(ticks(-number, number, number / 5).size(), 1000u) << number;
  }
}

TEST(Theme, FontsAreRealAndSeriesDiffer) {
  ASSERT_TRUE(has_fonts());
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(series_color(a), series_color(b));
  }
}

}  // namespace
}  // namespace zl::gui
