#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QSignalSpy>
#include <QTableView>
#include <numeric>

#include "gui/models/chart_data.h"
#include "gui/models/comparison.h"
#include "gui/models/run_model.h"
#include "gui/models/strategy_model.h"
#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/plot/line_plot.h"
#include "gui/theme.h"
#include "gui/units.h"
#include "gui/views/runs_page.h"
#include "tests/gui/helpers.h"
#include "tests/results/fixtures.h"

namespace zl::gui {
namespace {

using Mode = QAbstractItemModelTester::FailureReportingMode;

// The column that tells what is held stays in sight when the panel is narrow.
TEST(LiveTable, TheBytesComeFirst) {
  test::Desk desk(test::llama_on_a_node());
  const StrategyStudy& strategy = *desk.session.study()->find("zero-2");
  const Table live = live_table(strategy, 0.3);
  EXPECT_EQ(live.columns.front().name, "bytes");
  // The legend of the curves says the same number at the same moment.
  desk.session.hide({"zero-0", "zero-1", "zero-3", "zero-3-recompute"});
  LinePlot plot("Memory");
  plot.set_data(memory_lines(*desk.session.study(), desk.session.shown()));
  plot.resize(600, 400);
  for (const double moment : {0.05, 0.274, 0.3, 1.1}) {
    std::int64_t total = 0;
    for (const auto& row : live_table(strategy, moment).rows) {
      total += std::get<std::int64_t>(row[kLiveBytes]);
    }
    plot.set_cursor(moment);
    plot.grab();
    ASSERT_EQ(plot.marks().size(), 1u);
    EXPECT_TRUE(plot.marks()[0].text.contains(bytes_text(static_cast<double>(total))))
        << plot.marks()[0].text.toStdString() << " at " << moment;
  }
}

TEST(Comparison, TheVerdictStandsBesideItsMetricAndIsRight) {
  RunResult a, b;
  a.tokens_per_second = 100;
  b.tokens_per_second = 120;
  a.step_time.median = 1;
  b.step_time.median = 1.5;
  const Table table = metric_differences(a, b);
  EXPECT_EQ(table.columns[1].name, "B is");
  for (const auto& row : table.rows) {
    const bool rate = std::get<std::string>(row[0]) == "tokens_per_second";
    EXPECT_EQ(std::get<std::string>(row[1]), rate ? "✓ better" : "✗ worse");
  }
  EXPECT_EQ(table.rows.size(), 2u);
}

// 1-bit Adam warms up with long steps; a bar as long as their mean would be another step time.
TEST(ChartData, TheTimeBarsAreTheStepTimesOfTheTable) {
  test::Desk desk(Document::open("onebit-slow-link"));
  const auto study = desk.session.study();
  const BarData bars = time_bars(desk.session.shown());
  ASSERT_EQ(bars.rows.size(), study->strategies.size());
  for (std::size_t i = 0; i < bars.rows.size(); ++i) {
    const RunResult& result = study->strategies[i].result;
    const BarRow& row = bars.rows[i];
    EXPECT_NEAR(std::accumulate(row.values.begin(), row.values.end(), 0.0), result.step_time.median,
                1e-9 * result.step_time.median)
        << row.label.toStdString();
    EXPECT_EQ(row.low, result.step_time_low);
    EXPECT_EQ(row.high, result.step_time_high);
    EXPECT_GT(row.low, 0);
  }
  EXPECT_FALSE(bars.caption.isEmpty());
}

// Doubt is neither a fit nor a misfit.
TEST(ChartData, WhatMayNotFitSaysSo) {
  test::Desk desk(test::llama_on_a_node());
  const BarData bars = memory_bars(*desk.session.study(), desk.session.shown(), MemoryTier::device);
  const StrategyModel& table = desk.window.strategies().model();
  int doubtful = 0;
  for (std::size_t i = 0; i < bars.rows.size(); ++i) {
    const Fits verdict = fits(desk.session.study()->strategies[i].result);
    EXPECT_EQ(bars.rows[i].note.startsWith("?"), verdict == Fits::maybe);
    EXPECT_EQ(bars.rows[i].bad, verdict == Fits::no);
    const QVariant color = table.data(table.index(static_cast<int>(i), 1), Qt::ForegroundRole);
    if (verdict != Fits::maybe) continue;
    ++doubtful;
    const QPalette palette = QApplication::palette();
    EXPECT_EQ(color.value<QColor>(), warning(palette));
  }
  EXPECT_EQ(doubtful, 1);
}

TEST(Models, TableKeepsTheRules) {
  TableModel model;
  const QAbstractItemModelTester tester(&model, Mode::Fatal);
  model.set_table({{{"a", Align::left}, {"b", Align::right, Unit::bytes}},
                   {{std::string("x"), std::int64_t{2048}}, {std::string("y"), Cell()}}});
  EXPECT_EQ(model.data(model.index(0, 1), Qt::DisplayRole).toString(), "2.00 KiB");
  EXPECT_EQ(model.data(model.index(0, 1), kSortRole).toLongLong(), 2048);
  EXPECT_EQ(model.data(model.index(1, 1), Qt::DisplayRole).toString(), "-");
  model.set_table({});
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(Models, StrategiesFollowTheStudyAndTheBaseline) {
  Session session;
  StrategyModel model(session);
  const QAbstractItemModelTester tester(&model, Mode::Fatal);
  session.open(test::llama_on_a_node());
  session.wait();
  ASSERT_EQ(model.rowCount(), 5);
  const int columns = model.columnCount();
  const int row = model.row_of("zero-3");
  ASSERT_GE(row, 0);
  session.set_baseline("zero-3");
  EXPECT_EQ(model.columnCount(), columns + 4);
  // Deltas against itself are left out; those of others are relative.
  for (int column = 0; column < model.columnCount(); ++column) {
    const QString name = model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    if (name != "Δ peak device") continue;
    EXPECT_EQ(model.data(model.index(row, column), Qt::DisplayRole).toString(), "-");
    const auto& study = *session.study();
    const double base = static_cast<double>(bytes_at_peak(study.find("zero-3")->result));
    const double other = static_cast<double>(bytes_at_peak(study.find("zero-1")->result));
    EXPECT_DOUBLE_EQ(model.data(model.index(1, column), kSortRole).toDouble(), other / base - 1);
  }
  session.set_baseline("zero-3");
  EXPECT_EQ(model.columnCount(), columns);
}

TEST(Models, TrafficNamesTheWayOfEachMoveAndLeavesNoByteOut) {
  Session session;
  session.open(test::llama_on_a_node().with_strategies({"zero-1", "zero-3-offload-cpu"}));
  session.wait();
  const Study& study = *session.study();
  const BarData chart = traffic_bars(study, {&study.strategies[0], &study.strategies[1]}, false);
  for (std::size_t row = 0; row < 2; ++row) {
    const RunResult& result = study.strategies[row].result;
    double moved = 0;
    for (const CollectiveTotals& totals : result.communication) {
      if (totals.bytes == 0) continue;
      moved += static_cast<double>(totals.bytes) / static_cast<double>(result.steps);
      const bool tiers = totals.group == "tiers";
      const std::string along = totals.axis + (totals.group == "control" ? " control" : "");
      const std::string name =
          totals.collective + " (" + (tiers ? totals.link : along + ", nvlink4") + ")";
      const auto found =
          std::find(chart.series.begin(), chart.series.end(), QString::fromStdString(name));
      EXPECT_NE(found, chart.series.end()) << name;
    }
    const auto& values = chart.rows[row].values;
    EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), moved, 1e-6 * moved);
  }
}

TEST(Models, ARunOfAnotherProgramIsSeenWhileItTrains) {
  test::Desk desk(test::tiny_study());
  RunsPage& page = desk.window.runs();
  Store writer = Store::open(desk.path("runs.db"), Store::Mode::read_write);
  const auto stored =
      writer.save(zl::test::a_full_run(), zl::test::a_scenario(), zl::test::an_environment());
  page.open(desk.path("runs.db"));
  page.table()->selectRow(0);
  ASSERT_EQ(page.selected(), std::vector{stored});
  const auto id = writer.begin_live({0, "demo", "zero-2", "cpu", 20, {}});
  for (const std::size_t steps : {1, 2, 3}) {
    writer.update_live(id, 8, std::vector<double>(steps, 4.5));
    page.model().refresh();
    ASSERT_GE(page.losses()->data().curves.size(), 1u);
    EXPECT_EQ(page.losses()->data().curves[0].y.size(), steps);
    EXPECT_EQ(page.losses()->data().curves[0].x.front(), 9) << "it was resumed after 8 steps";
    EXPECT_TRUE(
        page.losses()->data().curves[0].name.contains(QString("step %1 of 20").arg(8 + steps)));
    EXPECT_EQ(page.selected(), std::vector{stored}) << "the selection stays";
  }
  writer.end_live(id);
  page.model().refresh();
  for (const Curve& curve : page.losses()->data().curves) {
    EXPECT_FALSE(curve.name.startsWith("running")) << curve.name.toStdString();
  }
}

TEST(Models, RunsKeepUpWithOtherWriters) {
  const zl::test::TempFolder folder;
  const auto path = folder / "runs.db";
  Store writer = Store::open(path, Store::Mode::read_write);
  RunModel model;
  const QAbstractItemModelTester tester(&model, Mode::Fatal);
  ASSERT_TRUE(model.open(path));
  EXPECT_EQ(model.rowCount(), 0);
  const auto id =
      writer.save(zl::test::a_full_run(), zl::test::a_scenario(), zl::test::an_environment());
  model.refresh();
  ASSERT_EQ(model.rowCount(), 1);
  EXPECT_EQ(model.run(0).id, id);
  EXPECT_TRUE(model.setData(model.index(0, RunModel::tags), "keep", Qt::EditRole));
  EXPECT_EQ(writer.list()[0].tags, "keep");
  EXPECT_FALSE(model.setData(model.index(0, RunModel::loss), 1, Qt::EditRole));
}

TEST(Models, EveryValueOfARunHasItsOwnUnit) {
  const zl::test::TempFolder folder;
  const auto path = folder / "runs.db";
  Store writer = Store::open(path, Store::Mode::read_write);
  RunResult run = zl::test::a_full_run();
  const std::pair<double, const char*> times[] = {{0.0031, "3.100 ms"}, {63.4, "63.400 s"}};
  for (const auto& [seconds, text] : times) {
    run.step_time.median = seconds;
    writer.save(run, zl::test::a_scenario(), zl::test::an_environment());
  }
  RunModel model;
  ASSERT_TRUE(model.open(path));
  for (int row = 0; row < 2; ++row) {  // the newest first
    EXPECT_EQ(model.index(row, RunModel::step_time).data().toString(), times[1 - row].second);
  }
}

TEST(Models, LiveBlocksAddUpToTheCurve) {
  Session session;
  session.open(test::llama_on_a_node());
  session.wait();
  for (const StrategyStudy& strategy : session.study()->strategies) {
    const auto memory = strategy.memory();
    const auto& point = memory[static_cast<std::size_t>(sim::peak_point(memory))];
    EXPECT_EQ(point.event, sim::peak_event(strategy.recording->trace, MemorySpace::device));
    const Table live = live_table(strategy, static_cast<double>(point.time) * 1e-12);
    std::int64_t total = 0;
    for (const auto& row : live.rows) total += std::get<std::int64_t>(row[kLiveBytes]);
    EXPECT_EQ(total, strategy.result.peak_device.total()) << strategy.name();
  }
}

TEST(Models, ContributorsExplainTheWholeDifference) {
  Session session;
  session.open(test::llama_on_a_node());
  session.wait();
  const StrategyStudy& a = *session.study()->find("zero-0");
  const StrategyStudy& b = *session.study()->find("zero-3");
  std::int64_t explained = 0;
  for (const auto& row : memory_contributors(a, b).rows) {
    explained += std::get<std::int64_t>(row.front());
  }
  EXPECT_EQ(explained, b.result.peak_device.total() - a.result.peak_device.total());
  const Table changed = configuration_differences(one_strategy_document(*session.study(), a),
                                                  one_strategy_document(*session.study(), b));
  bool stage = false;
  for (const auto& row : changed.rows) {
    if (std::get<std::string>(row[2]) != "strategy.zero_optimization.stage") continue;
    stage = true;
    EXPECT_EQ(std::get<std::string>(row[0]), "0");
    EXPECT_EQ(std::get<std::string>(row[1]), "3");
  }
  EXPECT_TRUE(stage);
}

}  // namespace
}  // namespace zl::gui
