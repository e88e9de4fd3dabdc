// Bars: lengths, order, what stands beside them, which keys reach them.
#include <gtest/gtest.h>

#include <cmath>

#include "gui/plot/bar_plot.h"
#include "gui/theme.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

BarData three_bars() {
  BarData data;
  data.rows_name = "strategy";
  data.series = {"parameter", "gradient"};
  data.unit = Unit::bytes;
  data.rows = {{"small", {1e9, 2e9}, {}, false},
               {"large", {4e9, 8e9}, {}, false},
               {"larger", {16e9, 5e9}, "does not fit", true}};
  data.limit = 12e9;
  data.limit_text = "capacity";
  return data;
}

TEST(BarPlot, LengthsAreProportionalToTheBytes) {
  BarPlot plot("Memory");
  plot.resize(700, 300);
  plot.set_data(three_bars());
  plot.grab();
  ASSERT_EQ(plot.marks().size(), 6u);
  const double per_byte = plot.marks()[0].area.width() / 1e9;
  const double bytes[] = {1e9, 2e9, 4e9, 8e9, 16e9, 5e9};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(plot.marks()[i].area.width(), bytes[i] * per_byte, 1e-6 * bytes[i] * per_byte);
  }
  // Stacked: each begins where the one before it ends.
  EXPECT_NEAR(plot.marks()[1].area.left(), plot.marks()[0].area.right(), 1e-6);
  const Table table = plot.table();
  EXPECT_EQ(std::get<double>(table.rows[2].back()), 21e9);
}

TEST(BarPlot, SharesFillTheWidth) {
  BarPlot plot("Memory");
  plot.resize(700, 300);
  plot.set_data(three_bars());
  plot.set_share(true);
  plot.grab();
  const auto& marks = plot.marks();
  ASSERT_EQ(marks.size(), 6u);
  const double whole = plot.pixels_per_unit();  // an axis from nothing to all
  EXPECT_GT(whole, plot.width() / 2);
  EXPECT_LT(plot.origin() + whole, plot.width());
  for (std::size_t row = 0; row < 3; ++row) {
    const QRectF &first = marks[2 * row].area, &second = marks[2 * row + 1].area;
    EXPECT_NEAR(first.left(), plot.origin(), 1e-6);
    EXPECT_NEAR(first.width() + second.width(), whole, 1e-6);
  }
  EXPECT_NEAR(marks[0].area.width(), whole / 3, 1e-6) << "1e9 of 3e9 bytes";
}

TEST(BarPlot, NoNumberStandsOnTheCapacityLine) {
  BarPlot plot("Memory");
  plot.resize(700, 300);
  BarData data = three_bars();
  data.limit = 13e9;  // behind the end of the second bar, where its number would be
  plot.set_data(data);
  const QImage image = plot.grab().toImage();
  const double x = plot.origin() + 13e9 * plot.pixels_per_unit();
  const QRectF second = plot.marks()[3].area;
  ASSERT_GT(x - 20, second.right());
  int line = 0;
  for (int y = static_cast<int>(second.top()); y < second.bottom(); ++y) {
    line += image.pixelColor(static_cast<int>(x), y) == bad(plot.palette());
    for (int at = static_cast<int>(x) - 10; at < x + 10; ++at) {
      EXPECT_NE(image.pixelColor(at, y), plot.palette().text().color()) << at << ", " << y;
    }
  }
  EXPECT_GT(line, second.height() / 2) << "dashes cover most of it";
}

TEST(BarPlot, ErrorBarsReachFromLowToHigh) {
  BarPlot plot("Step time");
  plot.resize(700, 300);
  BarData data = three_bars();
  data.limit.reset();
  data.rows[1].low = 9e9;
  data.rows[1].high = 40e9;  // longer than any bar
  plot.set_data(data);
  const QImage image = plot.grab().toImage();
  const QColor ink = plot.palette().text().color();
  const int middle = static_cast<int>(plot.marks()[2].area.center().y());
  const auto is_ink = [&](double value) {
    const int x = static_cast<int>(plot.origin() + value * plot.pixels_per_unit());
    for (const int y : {middle - 1, middle, middle + 1}) {
      if (image.pixelColor(x, y) == ink) return true;
    }
    return false;
  };
  EXPECT_FALSE(is_ink(8.5e9));
  EXPECT_TRUE(is_ink(9.5e9));
  EXPECT_TRUE(is_ink(39.5e9));
  EXPECT_FALSE(is_ink(41e9));
  const Table table = plot.table();
  ASSERT_EQ(table.columns.back().name, "high");
  EXPECT_EQ(std::get<double>(table.rows[1].back()), 40e9);
}

TEST(Plot, ArrowsMoveOverThePartsAndFocusIsVisible) {
  BarPlot plot("Memory");
  plot.resize(700, 300);
  plot.set_data(three_bars());
  plot.show();
  const QImage before = plot.grab().toImage();
  plot.setFocus();
  plot.activateWindow();
  ASSERT_TRUE(test::eventually([&] { return plot.hasFocus(); }));
  EXPECT_NE(plot.grab().toImage(), before) << "a ring around the chart with the focus";
  QTest::keyClick(&plot, Qt::Key_Right);
  EXPECT_EQ(plot.current(), 0);
  QTest::keyClick(&plot, Qt::Key_Right);
  QTest::keyClick(&plot, Qt::Key_Right);
  EXPECT_EQ(plot.current(), 2);
  EXPECT_TRUE(plot.accessibleDescription().startsWith("large, parameter"));
  QTest::keyClick(&plot, Qt::Key_End);
  EXPECT_EQ(plot.current(), 5);
  int activated = -1;
  QObject::connect(&plot, &Plot::activated, &plot, [&](int row) { activated = row; });
  QTest::keyClick(&plot, Qt::Key_Return);
  EXPECT_EQ(activated, 2);
}

}  // namespace
}  // namespace zl::gui
