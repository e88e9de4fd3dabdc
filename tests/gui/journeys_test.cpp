// What people do from beginning to end.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QSlider>
#include <QTableView>

#include "gui/models/strategy_model.h"
#include "gui/models/table_model.h"
#include "gui/plot/bar_plot.h"
#include "gui/plot/export.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/parallel_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/compare_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/fit_page.h"
#include "gui/views/hardware_panel.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/trace_views.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

BarPlot* memory_plot(MainWindow& window) {
  return qobject_cast<BarPlot*>(static_cast<ChartPage*>(window.view("memory"))->plot());
}

double total_of(const BarPlot* plot, std::size_t row) {
  return std::get<double>(plot->table().rows[row].back());
}

TEST(Journey, AnEditIsFollowedByEveryViewAndCanBeUndone) {
  test::Desk desk(test::llama_on_a_node());
  const BarPlot* plot = memory_plot(desk.window);
  const double before = total_of(plot, 4);
  test::type_into(desk.window, "run.micro_batch", "2");
  desk.session.wait();
  EXPECT_GT(total_of(plot, 4), before);
  EXPECT_EQ(desk.session.study()->strategies[0].imported.strategy.micro_batch, 2);
  EXPECT_EQ(desk.window.strategies().model().rowCount(), 5);
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_EQ(total_of(plot, 4), before);
  desk.session.undo().redo();
  desk.session.wait();
  EXPECT_GT(total_of(plot, 4), before);
}

TEST(Journey, AWrongValueIsMarkedAtItsFieldAndTheStudyStays) {
  test::Desk desk(test::llama_on_a_node());
  const ScenarioDock& dock = test::form(desk.window);
  const std::pair<const char*, const char*> wrong[] = {
      {"run.micro_batch", "0"}, {"run.ranks", "many"}, {"run.device_memory", "16 bananas"}};
  for (const auto& [key, text] : wrong) {
    const auto study = desk.session.study();
    test::type_into(desk.window, key, text);
    desk.session.wait();
    EXPECT_FALSE(dock.error_at(key).isEmpty()) << key;
    EXPECT_EQ(desk.session.study(), study);
    desk.session.undo().undo();
    desk.session.wait();
    EXPECT_TRUE(dock.error_at(key).isEmpty()) << key;
  }
  desk.session.edit_key("model", "llama3-8c");
  desk.session.wait();
  EXPECT_TRUE(dock.error_at("model").contains("llama3-8b"));
}

TEST(Journey, ASliderOnlyPricesAgainAndOneUndoTakesItBack) {
  test::Desk desk(test::llama_on_a_node());
  auto* panel = desk.window.findChild<HardwarePanel*>();
  const double before = desk.session.study()->strategies[2].result.step_time.median;
  constexpr int kFlops = 1;
  for (int tick = 1; tick <= 8; ++tick) panel->slider(kFlops)->setValue(tick);
  desk.session.wait();
  const auto& after = *desk.session.study();
  EXPECT_EQ(after.recorded, 0);
  EXPECT_LT(after.strategies[2].result.step_time.median, before);
  EXPECT_EQ(after.scenario.run.ranks, 8);
  EXPECT_EQ(desk.session.undo().count(), 1);
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->strategies[2].result.step_time.median, before);
  EXPECT_EQ(panel->slider(kFlops)->value(), 0);
}

TEST(Journey, SelectCompareExport) {
  test::Desk desk(test::llama_on_a_node());
  StrategyView& table = desk.window.strategies();
  table.table()->selectionModel()->select(
      table.table()->model()->index(0, 0),
      QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  table.table()->selectionModel()->select(table.table()->model()->index(3, 0),
                                          QItemSelectionModel::Select | QItemSelectionModel::Rows);
  EXPECT_EQ(desk.session.selection(), (QStringList{"zero-0", "zero-3"}));
  EXPECT_EQ(memory_plot(desk.window)->data().rows.size(), 5u) << "a selection hides nothing";
  desk.session.hide({"zero-1", "zero-2", "zero-3-recompute"});
  desk.window.show_view("compare");
  ComparePage& page = desk.window.comparison();
  const auto subject = [&page](const char* side) {
    for (const QComboBox* each : page.findChildren<QComboBox*>()) {
      if (each->accessibleName() == side) return each->currentData().toString();
    }
    return QString();
  };
  for (const char* baseline : {"zero-1", "zero-0"}) {
    desk.session.set_baseline(baseline);
    EXPECT_EQ(subject("A"), baseline);
    EXPECT_NE(subject("B"), baseline) << "with itself says nothing";
  }
  page.compare_strategies("zero-0", "zero-3");
  ASSERT_TRUE(test::eventually([&] {
    return page.memory()->data().curves.size() == 2 &&
           page.memory()->data().curves[1].name.contains("zero-3");
  }));
  EXPECT_GT(page.metrics()->rowCount(), 5);
  EXPECT_TRUE(page.ratio_text().startsWith("A step of B takes 0.7"))
      << page.ratio_text().toStdString();
  EXPECT_FALSE(page.ratio_text().contains("not decided")) << "what both share cancels";
  for (const auto& row : page.metrics()->table().rows) {
    if (row[0] != Cell(std::string("step_time_seconds"))) continue;
    EXPECT_EQ(row[1], Cell(std::string("\u2713 better")));
  }
  EXPECT_GT(page.configuration()->rowCount(), 0);
  EXPECT_GT(page.contributors()->rowCount(), 0);
  const QString file = desk.folder.filePath("memory.csv");
  save_plot(*memory_plot(desk.window), file);
  QFile csv(file);
  ASSERT_TRUE(csv.open(QIODevice::ReadOnly));
  EXPECT_EQ(csv.readAll().count('\n'), 3);
  EXPECT_EQ(table.as_tsv().count('\n'), 3);
  EXPECT_TRUE(table.as_markdown().contains("| zero-3"));
}

TEST(Journey, ADeepSpeedFileJoinsTheStrategiesOrSaysWhyNot) {
  test::Desk desk(test::llama_on_a_node());
  const std::string good = desk.path("mine.json"), bad = desk.path("typo.json");
  test::write_file(good, R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
                             "zero_optimization": {"stage": 2}})");
  test::write_file(bad, R"({"zero_optimisation": {"stage": 2}})");
  desk.window.open_file(QString::fromStdString(good));
  desk.session.wait();
  ASSERT_EQ(desk.session.study()->strategies.size(), 6u);
  EXPECT_EQ(desk.session.study()->strategies[5].name(), "mine");
  EXPECT_TRUE(desk.window.command().contains("mine.json"));
  desk.window.open_file(QString::fromStdString(bad));
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->strategies.size(), 6u);
  const auto* keys = desk.window.view("keys")->findChild<QTableView*>();
  bool named = false;
  for (int row = 0; row < keys->model()->rowCount(); ++row) {
    named = named || keys->model()->index(row, 0).data().toString() == "zero_optimisation";
  }
  EXPECT_TRUE(named) << "an unknown key is shown, not dropped";
  EXPECT_TRUE(desk.window.view("keys")->findChild<QLabel*>()->text().endsWith("typo.json"));
  const std::string model = desk.path("config.json");
  test::write_file(model, R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2,
                              "n_positions": 128, "vocab_size": 300})");
  desk.window.open_file(QString::fromStdString(model));
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.model.hidden, 64);
}

TEST(Journey, OneClickMakesAStrategyFit) {
  test::Desk desk(test::llama_on_a_node());
  ASSERT_FALSE(desk.session.study()->strategies[0].fits());
  desk.window.show_view("fit");
  auto* page = qobject_cast<FitPage*>(desk.window.view("fit"));
  ASSERT_TRUE(test::eventually([&] { return page->table()->rowCount() > 0; }));
  // The first advice may be a strategy that is there already, which is then pointed at.
  for (int row = 0; !desk.session.undo().canUndo() && row < page->table()->rowCount(); ++row) {
    page->apply(row);
  }
  desk.session.wait();
  EXPECT_TRUE(desk.session.study()->strategies[0].fits());
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_FALSE(desk.session.study()->strategies[0].fits());
}

TEST(Journey, ASweepIsBrushedAndOneCombinationJoinsTheScenario) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-1"}));
  desk.window.show_view("explore");
  auto* page = qobject_cast<ExplorePage*>(desk.window.view("explore"));
  ASSERT_NE(page, nullptr);
  page->wait();
  const auto study = desk.session.study();
  const auto all = sweep_variations(*study, study->strategies[0]);
  // Stages 0-3, three recomputations and five micro-batches without offload, and more with it.
  EXPECT_GT(all.size() + 1, 4u * 3 * 5);
  EXPECT_EQ(page->plot()->table().rows.size(), all.size() + 1) << "and the strategy as it is";
  QTableView* view = nullptr;
  for (auto* each : page->findChildren<QTableView*>()) {
    if (each->accessibleName() == "Combinations") view = each;
  }
  ASSERT_NE(view, nullptr);
  const auto changes = [&] {
    return view->model()->index(view->currentIndex().row(), 5).data().toString();
  };
  int last = view->model()->rowCount() - 1;
  while (!view->model()->index(last, 5).data().toString().contains("ZeRO stage 1 → 3")) --last;
  view->setCurrentIndex(view->model()->index(last, 0));
  const QString chosen = changes();
  page->plot()->brush(0, ParallelPlot::Range(2.5, 3.5));  // stage 3
  EXPECT_EQ(changes(), chosen) << "what the cursor is on stays under it";
  const int rows = page->table()->rowCount();
  EXPECT_GT(rows, 0);
  EXPECT_LT(rows, static_cast<int>(all.size()));
  page->add(0);
  desk.session.wait();
  ASSERT_EQ(desk.session.study()->strategies.size(), 2u);
  const StrategyStudy& added = desk.session.study()->strategies[1];
  EXPECT_EQ(added.imported.strategy.zero.stage, 3);
  // The sweep's number is the scenario's number.
  page->wait();
  for (const auto& row : page->plot()->table().rows) {
    if (std::get<std::string>(row[0]) != added.name()) continue;
    EXPECT_EQ(std::get<double>(row[8]), static_cast<double>(added.result.peak_device.total()));
    return;
  }
  FAIL() << added.name() << " is not in the sweep any more";
}

TEST(Journey, AMomentOfTheMemoryCurveSaysWhatIsLive) {
  test::Desk desk(test::llama_on_a_node());
  desk.window.show_view("over-time");
  auto* page = qobject_cast<MemoryTimePage*>(desk.window.view("over-time"));
  ASSERT_TRUE(page->plot()->cursor()) << "it starts at the peak";
  EXPECT_GT(page->live()->rowCount(), 3);
  const int at_peak = page->live()->rowCount();
  page->plot()->set_cursor(0);
  EXPECT_LT(page->live()->rowCount(), at_peak) << "before the first step there is little";
}

}  // namespace
}  // namespace zl::gui
