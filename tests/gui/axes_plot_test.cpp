// Points and lines over axes: the front, labels that keep clear, ranges that are dragged.
#include <gtest/gtest.h>

#include <QFontMetricsF>
#include <cmath>
#include <random>

#include "gui/plot/parallel_plot.h"
#include "gui/plot/scatter_plot.h"
#include "gui/theme.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

TEST(ScatterPlot, TheFrontIsWhatNoPointBeats) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> value(0, 30);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScatterPoint> points;
    for (int i = 0; i < 12; ++i) {
      points.push_back({"", double(value(random)), double(value(random)), value(random) > 5});
    }
    const auto front = pareto_front(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool beaten = !points[i].feasible;
      bool twin = false;
      for (std::size_t j = 0; j < points.size(); ++j) {
        if (!points[j].feasible || j == i) continue;
        const bool as_good = points[j].x <= points[i].x && points[j].y >= points[i].y;
        const bool same = points[j].x == points[i].x && points[j].y == points[i].y;
        beaten = beaten || (as_good && !same);
        twin = twin || same;
      }
      const bool on_front = std::find(front.begin(), front.end(), i) != front.end();
      EXPECT_FALSE(on_front && beaten);
      EXPECT_TRUE(on_front || beaten || twin);
    }
  }
}

QColor at(const QImage& image, const QPointF& point) { return image.pixelColor(point.toPoint()); }

ScatterData one_that_fits_not() {
  ScatterData data;
  data.x_name = "memory";
  data.y_name = "tokens/s";
  data.points = {{"small", 20, 50, true}, {"fast", 40, 90, true}, {"large", 120, 91, false}};
  data.x_limit = 80;
  return data;
}

TEST(ScatterPlot, TheFrontEndsAtTheCapacityAndWhatDoesNotFitIsHollow) {
  ScatterPlot plot("Trade-off");
  plot.resize(700, 400);
  plot.set_data(one_that_fits_not());
  const QImage image = plot.grab().toImage();
  const QPointF fast = plot.marks()[1].area.center(), large = plot.marks()[2].area.center();
  EXPECT_EQ(at(image, fast), series_color(1));
  EXPECT_EQ(at(image, large), plot.palette().base().color()) << "hollow";
  EXPECT_TRUE(plot.marks()[2].text.startsWith("✗ large"));
  // Around the height of the front, right of the capacity (half way from 40 to 120).
  const auto has_front = [&](double x) {
    for (double y = fast.y() - 2; y <= fast.y() + 2; ++y) {
      const QColor pixel = at(image, QPointF(x, y));
      if (pixel != plot.palette().base().color() && pixel != grid(plot.palette())) return true;
    }
    return false;
  };
  const double capacity = (fast.x() + large.x()) / 2;
  EXPECT_TRUE(has_front(capacity - 10));
  EXPECT_FALSE(has_front(capacity + 10));
}

TEST(ScatterPlot, PredictionsOfAllSizesKeepApartAndShowTheirErrorBars) {
  ScatterPlot plot("Accuracy");
  plot.resize(700, 400);
  ScatterData data;
  data.x_unit = data.y_unit = Unit::seconds;
  data.diagonal = true;
  data.points = {{"tiny", 0.003, 0.003, true, 0.001, 0.009},
                 {"small", 0.006, 0.006, true},
                 {"large", 30, 30, true}};
  plot.set_data(data);
  const QImage image = plot.grab().toImage();
  const QPointF tiny = plot.marks()[0].area.center(), small = plot.marks()[1].area.center(),
                large = plot.marks()[2].area.center();
  EXPECT_GT(small.x() - tiny.x(), 12) << "on a linear axis to 30 s they would be one";
  // On the diagonal: as far right as up, in shares of the axes, which are alike.
  EXPECT_NEAR((small.x() - tiny.x()) / (large.x() - tiny.x()),
              (small.y() - tiny.y()) / (large.y() - tiny.y()), 0.01);
  // A factor of three is as long as another: the bar of "tiny" reaches as far up as down.
  const double factor_two = tiny.y() - small.y();
  const double reach = factor_two * std::log(3) / std::log(2);
  for (const double y : {tiny.y() - reach + 3, tiny.y() + reach - 3}) {
    EXPECT_NE(at(image, QPointF(tiny.x(), y)), plot.palette().base().color());
  }
  EXPECT_EQ(at(image, QPointF(tiny.x(), tiny.y() + reach + 4)), plot.palette().base().color());
  EXPECT_TRUE(plot.marks()[0].text.contains("90 % within 1.000 ms and 9.000 ms"));
}

// Between the axis and the capacity there is only room above and below.
TEST(ScatterPlot, AFittingStrategyKeepsItsLabelInANarrowChart) {
  ScatterPlot plot("Trade-off");
  plot.resize(460, 230);
  ScatterData data;
  data.points = {{"zero-3-recompute", 23, 75, true}, {"large", 169, 80, false}};
  data.x_limit = 80;
  plot.set_data(data);
  const QImage image = plot.grab().toImage();
  data.points[0].label.clear();
  plot.set_data(data);
  EXPECT_NE(image, plot.grab().toImage());
}

// Seen with GPT-3 175B on 64 GPUs: the only strategy that fits stood at the edge without a name.
TEST(ScatterPlot, WhatFitsKeepsItsLabelBesideAGiant) {
  ScatterPlot plot("Trade-off");
  plot.resize(480, 230);
  ScatterData data;
  data.points = {{"zero-0", 3000, 19000, false},
                 {"zero-1", 1075, 37777, false},
                 {"zero-2", 445, 35137, false},
                 {"zero-3", 128, 22670, false},
                 {"zero-3-recompute", 62, 20264, true}};
  data.x_limit = 80;
  plot.set_data(data);
  const QImage image = plot.grab().toImage();
  data.points[4].label.clear();
  plot.set_data(data);
  EXPECT_NE(image, plot.grab().toImage());
}

TEST(ScatterPlot, CaptionsDoNotMeet) {
  const QFontMetricsF metrics{QFont()};
  const QString axis = "peak device memory of a rank";
  const double name = metrics.horizontalAdvance(axis + " (log)");
  for (double width = name; width < 3 * name; width += 7) {
    const auto [right, left] = scatter_captions(axis, true, width, metrics);
    EXPECT_LE(metrics.horizontalAdvance(right) + metrics.horizontalAdvance(left), width) << width;
  }
  EXPECT_TRUE(scatter_captions(axis, true, 3 * name, metrics).hollow.startsWith("hollow"));
}

// However crowded: no label lies on a symbol.
TEST(ScatterPlot, NoSymbolIsHidden) {
  ScatterPlot plot("Trade-off");
  plot.resize(700, 400);
  ScatterData data = one_that_fits_not();
  data.points[2].feasible = true;  // a "✗" would stay where labels go
  data.points.push_back({"beside it on the right", 44, 90, true});
  for (int i = 0; i < 20; ++i) data.points.push_back({"one of many", 30.0 + 3 * i, 70, true});
  plot.set_data(data);
  const QImage image = plot.grab().toImage();
  for (ScatterPoint& point : data.points) point.label.clear();
  plot.set_data(data);
  const QImage bare = plot.grab().toImage();
  ASSERT_NE(image, bare);
  for (std::size_t i = 0; i < data.points.size(); ++i) {
    const QRect symbol = plot.marks()[i].area.adjusted(2, 2, -2, -2).toRect();
    EXPECT_EQ(image.copy(symbol), bare.copy(symbol)) << i;
  }
}

ParallelData three_runs() {
  ParallelData data;
  data.axes = {{"stage", Unit::none, {"0", "1"}}, {"memory", Unit::bytes}, {"time", Unit::seconds}};
  data.lines = {{"a", {0, 100, 1.0}}, {"b", {1, 200, NAN}, false}, {"c", {1, 300, 3.0}}};
  return data;
}

TEST(ParallelPlot, RangesKeepTheLinesThatPassThroughAll) {
  ParallelPlot plot("Runs");
  plot.set_data(three_runs());
  std::vector<int> told;
  QObject::connect(&plot, &ParallelPlot::brushed,
                   [&told](const std::vector<int>& lines) { told = lines; });
  EXPECT_EQ(plot.kept(), (std::vector{0, 1, 2}));
  plot.brush(1, ParallelPlot::Range(150, 300));
  EXPECT_EQ(told, (std::vector{1, 2}));
  plot.brush(2, ParallelPlot::Range(0, 10));  // a line without a value is not in any range
  EXPECT_EQ(told, (std::vector{2}));
  plot.brush(1, std::nullopt);
  EXPECT_EQ(told, (std::vector{0, 2}));
  QTest::keyClick(&plot, Qt::Key_Escape);
  EXPECT_EQ(told, (std::vector{0, 1, 2}));
}

// One value has no ends: numbers that no line has would be none of the axis.
TEST(ParallelPlot, AnAxisSaysOnlyNumbersThatLinesHave) {
  ParallelPlot plot("Runs");
  ParallelData data = three_runs();
  data.axes.push_back({"tensor"});
  data.axes.push_back({"unknown"});
  for (ParallelLine& line : data.lines) {
    line.values.push_back(1);
    line.values.push_back(NAN);
  }
  plot.set_data(data);
  EXPECT_EQ(plot.numbers(1), (std::vector<double>{100, 300}));
  EXPECT_EQ(plot.numbers(3), std::vector<double>{1});
  EXPECT_TRUE(plot.numbers(4).empty());
  EXPECT_TRUE(plot.numbers(0).empty()) << "its categories say it";
  plot.resize(600, 400);
  EXPECT_FALSE(plot.grab().isNull());
}

TEST(ParallelPlot, NamesStandInTwoRowsWhereOneCutsThem) {
  ParallelPlot plot("Runs");
  ParallelData data = three_runs();
  data.axes[1].name = "peak device of a rank";
  plot.set_data(data);
  for (const int width : {280, 900}) {
    plot.resize(width, 400);
    plot.grab();
    EXPECT_EQ(plot.is_staggered(), width < 900) << width;
  }
}

TEST(ParallelPlot, ADragOnAnAxisIsARangeAndAClickTakesItAway) {
  ParallelPlot plot("Runs");
  plot.set_data(three_runs());
  plot.resize(600, 400);
  plot.grab();
  // The last axis ends where the marks are; its values fall from top to bottom.
  ASSERT_EQ(plot.marks().size(), 3u);
  const QPointF low = plot.marks()[0].area.center(), high = plot.marks()[2].area.center();
  EXPECT_DOUBLE_EQ(low.x(), high.x());
  EXPECT_GT(low.y(), high.y());
  const QPoint from(static_cast<int>(high.x()), static_cast<int>(high.y()) - 4);
  QTest::mousePress(&plot, Qt::LeftButton, {}, from);
  QTest::mouseMove(&plot, from + QPoint(0, 60));
  QTest::mouseRelease(&plot, Qt::LeftButton, {}, from + QPoint(0, 60));
  EXPECT_EQ(plot.kept(), (std::vector{2}));
  QTest::mouseClick(&plot, Qt::LeftButton, {}, from);
  EXPECT_EQ(plot.kept(), (std::vector{0, 1, 2}));
}

TEST(ParallelPlot, TheTableHasEveryValueAndTheCacheFollowsTheData) {
  ParallelPlot plot("Runs");
  plot.resize(600, 400);
  plot.set_data(three_runs());
  const Table table = plot.table();
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(std::get<std::string>(table.rows[1][1]), "1");
  EXPECT_EQ(std::get<double>(table.rows[1][2]), 200);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[1][3]));
  const QImage before = plot.grab().toImage();
  EXPECT_EQ(before, plot.grab().toImage());
  ParallelData other = three_runs();
  other.lines[0].values[1] = 250;
  plot.set_data(other);
  EXPECT_NE(before, plot.grab().toImage());
}

}  // namespace
}  // namespace zl::gui
