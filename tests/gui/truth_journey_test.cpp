// Why a prediction is what it is, and how true predictions of published runs are: the figures of
// `zerolab explain` and `zerolab validate`.
#include <gtest/gtest.h>

#include <QComboBox>
#include <algorithm>
#include <map>

#include "gui/models/chart_data.h"
#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/views/accuracy_page.h"
#include "gui/views/explain_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/fit_page.h"
#include "gui/views/published_panel.h"
#include "scenarios/published/validate_tables.h"
#include "scenarios/run/explain_tables.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

void expect_same(const TableModel& shown, const Table& expected) {
  EXPECT_EQ(render(shown.table(), Format::csv), render(expected, Format::csv));
}

TEST(TruthJourney, ExplainHasTheFiguresOfTheCommandLine) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2", "zero-3"}));
  ASSERT_TRUE(desk.window.show_view("explain"));
  auto* page = qobject_cast<ExplainPage*>(desk.window.view("explain"));
  ASSERT_NE(page, nullptr);
  page->wait();
  const Study& study = *desk.session.study();
  const Explanation why = explain(study.scenario, study.strategies[0].imported);
  EXPECT_TRUE(page->summary().startsWith("A step of zero-2 takes "))
      << page->summary().toStdString();
  expect_same(page->parts(), parts_table(why.result));
  expect_same(page->step(), step_table(why));
  expect_same(page->peak(), peak_table(why));
  expect_same(page->levers(), lever_table(why));
  EXPECT_GT(page->levers().rowCount(), 0);
  desk.session.select({"zero-3"});
  page->wait();
  EXPECT_TRUE(page->summary().startsWith("A step of zero-3 takes "));
  expect_same(page->step(), step_table(explain(study.scenario, study.strategies[1].imported)));
  // An edit while the page is open explains what is simulated now.
  desk.session.edit_key("run.micro_batch", "2");
  desk.session.wait();
  page->wait();
  const Study& edited = *desk.session.study();
  expect_same(page->step(), step_table(explain(edited.scenario, edited.strategies[1].imported)));
}

// Of a table of changes, its cell in the row of this one alone.
std::string cell_of_change(const Table& table, const std::string& column,
                           const std::string& change) {
  std::size_t at = 0;
  while (table.columns.at(at).name != column) ++at;
  for (const auto& row : table.rows) {
    const bool is_it = std::ranges::find(row, Cell(change)) != row.end();
    if (is_it) return std::get<std::string>(row[at]);
  }
  return "no such row";
}

TEST(TruthJourney, WhatMayFitIsNoSureAdvice) {
  test::Desk desk(test::llama_on_a_node());
  ASSERT_EQ(fits(desk.session.study()->find("zero-2")->result), Fits::maybe);
  ASSERT_EQ(fits(desk.session.study()->find("zero-3")->result), Fits::yes);
  desk.window.show_view("explore");
  auto& explore = *static_cast<ExplorePage*>(desk.window.view("explore"));
  explore.wait();
  desk.window.show_view("fit");
  auto& fit = *static_cast<FitPage*>(desk.window.view("fit"));
  ASSERT_TRUE(test::eventually([&] { return fit.table()->rowCount() > 0; }));
  for (const TableModel* table : {explore.table(), fit.table()}) {
    EXPECT_EQ(cell_of_change(table->table(), "fits", "ZeRO stage 0 → 2"), "? maybe");
    EXPECT_EQ(cell_of_change(table->table(), "fits", "ZeRO stage 0 → 3"), "✓ yes");
  }
  const auto first = fit.table()->table().rows.front();
  EXPECT_EQ(first[2], Cell(std::string("ZeRO stage 0 → 3"))) << "the surer, if not the faster";
}

// Of a device the bars are of the bytes that decide whether it fits.
TEST(TruthJourney, BarsOfMemoryAreTheSoftwares) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-3"}));
  desk.session.edit_key("run.software", "\"torch-fsdp2\"");
  desk.session.wait();
  const Study& study = *desk.session.study();
  const StrategyStudy& strategy = study.strategies[0];
  ASSERT_TRUE(strategy.result.software_held.is_known());
  const BarData bars = memory_bars(study, {&strategy}, MemoryTier::device);
  ASSERT_EQ(bars.rows.size(), 1U);
  const BarRow& row = bars.rows[0];
  EXPECT_EQ(row.values.size(), bars.series.size());
  EXPECT_EQ(total(row), static_cast<double>(strategy.reserved()));
  EXPECT_EQ(row.low, static_cast<double>(strategy.result.software_held.low));
  EXPECT_EQ(row.high, static_cast<double>(strategy.result.software_held.high));
  EXPECT_TRUE(bars.caption.contains("torch-fsdp2")) << bars.caption.toStdString();
  desk.session.edit_key("run.software", "\"zerolab\"");
  desk.session.wait();
  const Study& own = *desk.session.study();
  const BarData recorded = memory_bars(own, {&own.strategies[0]}, MemoryTier::device);
  EXPECT_EQ(total(recorded.rows[0]),
            static_cast<double>(own.strategies[0].result.peak_device.total()));
  EXPECT_TRUE(recorded.caption.isEmpty());
}

TEST(TruthJourney, TheCostOfAnOperationNamesItsLimit) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2"}));
  const Study& study = *desk.session.study();
  const StrategyStudy& strategy = study.strategies[0];
  const StepItem longest = explain(study.scenario, strategy.imported).step.front();
  const auto& events = strategy.recording->trace.events();
  std::size_t event = events.size() - 1;
  while (short_name(events[event]) != longest.operation) --event;
  std::map<std::string, std::string> card;
  for (const auto& row :
       cost_card(study, strategy, *op_names(study, strategy), static_cast<std::int32_t>(event))
           .rows) {
    card[std::get<std::string>(row[0])] = std::get<std::string>(row[1]);
  }
  EXPECT_EQ(card["limited by"], longest.limit);
  EXPECT_TRUE(card["at a rate of"].ends_with("FLOP/s")) << card["at a rate of"];
  EXPECT_TRUE(card["share of its peak"].ends_with(" %")) << card["share of its peak"];
}

// Some of the catalogue that can be said in this program's terms, times and bytes.
std::vector<PublishedRun> some_runs() {
  std::vector<PublishedRun> some;
  int times = 0, bytes = 0;
  for (PublishedRun& run : catalog_published()) {
    int& have = is_memory(run) ? bytes : times;
    if (have == 4 || !express(run).scenario) continue;
    ++have;
    some.push_back(std::move(run));
  }
  return some;
}

TEST(TruthJourney, PublishedRunsHaveTheFiguresOfTheCommandLine) {
  test::Desk desk(test::tiny_study());
  ASSERT_TRUE(desk.window.show_view("accuracy"));
  PublishedPanel& panel = qobject_cast<AccuracyPage*>(desk.window.view("accuracy"))->published();
  EXPECT_EQ(panel.runs().rowCount(), 0) << "nothing is predicted unasked";
  panel.start(some_runs());
  ASSERT_TRUE(test::eventually([&] { return !panel.running(); }));
  std::vector<PublishedRun> times, bytes;
  for (PublishedRun& run : some_runs()) (is_memory(run) ? bytes : times).push_back(run);
  const std::vector<Judged> judged = judge_published(times);
  ASSERT_GT(panel.runs().rowCount(), 0);
  expect_same(panel.runs(), judged_table(judged, Unit::seconds));
  expect_same(panel.accuracy(), accuracy_table(accuracy_by_software(judged), false));
  EXPECT_TRUE(panel.state().contains("of 4 runs are predicted.")) << panel.state().toStdString();
  const QString state = panel.state();
  EXPECT_TRUE(state.contains("by fits without their group")) << state.toStdString();
  const int panel_columns = panel.accuracy().columnCount();
  panel.quantity()->setCurrentIndex(1);
  const std::vector<Judged> held = judge_published_memory(bytes);
  expect_same(panel.runs(), judged_table(held, Unit::bytes));
  // They are in the database: of the next window, and of a report.
  Session session;
  MainWindow next(session, {desk.path("runs.db"), ""});
  next.show();
  ASSERT_TRUE(next.show_view("accuracy"));
  PublishedPanel& again = qobject_cast<AccuracyPage*>(next.view("accuracy"))->published();
  again.load();
  EXPECT_EQ(again.state(), state) << "with what was left out, and every measurement";
  EXPECT_EQ(again.accuracy().columnCount(), panel_columns);
  EXPECT_EQ(again.runs().rowCount(), std::ssize(judged_table(judged, Unit::seconds).rows));
  EXPECT_EQ(again.accuracy().rowCount(),
            std::ssize(accuracy_table(accuracy_by_software(judged), false).rows));
}

}  // namespace
}  // namespace zl::gui
