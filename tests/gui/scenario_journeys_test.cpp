// What people do with the form of the scenario: choose a cluster, make mistakes, add strategies.
// Each step is checked before the next.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLineEdit>
#include <QTableView>
#include <set>

#include "gui/models/table_model.h"
#include "gui/plot/plot.h"
#include "gui/views/fit_page.h"
#include "gui/views/notice_bar.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/train_page.h"
#include "scenarios/planner/sweep.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

using test::form;
using test::type_into;

void choose(MainWindow& window, const char* key, const QString& text) {
  auto* combo = qobject_cast<QComboBox*>(form(window).field(key));
  ASSERT_NE(combo, nullptr);
  combo->setCurrentText(text);
  Q_EMIT combo->activated(combo->currentIndex());
}

TEST(ScenarioJourney, AClusterBringsItsRanksUnlessTheyWereTyped) {
  test::Desk desk(Document::open("demo"));
  MainWindow& window = desk.window;
  choose(window, "model", "llama3-8b");
  choose(window, "cluster", "8xh100");
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.run.ranks, 8);
  EXPECT_EQ(desk.session.study()->strategies[0].imported.strategy.micro_batch, 1)
      << "not the demo's 2";
  EXPECT_EQ(form(window).ranks_note(), "all 8 GPUs");
  EXPECT_EQ(desk.session.study()->scenario.name, "llama3-8b on 8xh100") << "it is no demo now";
  EXPECT_EQ(desk.session.document().get("x-comment"), "");
  EXPECT_TRUE(window.windowTitle().startsWith("llama3-8b on 8xh100"));
  type_into(window, "run.ranks", "8");
  type_into(window, "run.micro_batch", "2");
  choose(window, "cluster", "64xh100");
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.run.ranks, 8) << "typed: it stays";
  EXPECT_EQ(desk.session.study()->strategies[0].imported.strategy.micro_batch, 2);
  EXPECT_EQ(form(window).ranks_note(), "8 of 64 GPUs used");
  type_into(window, "run.ranks", "");
  auto* ranks = qobject_cast<QLineEdit*>(form(window).field("run.ranks"));
  ranks->clear();
  QTest::keyClick(ranks, Qt::Key_Return);
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.run.ranks, 64);
  choose(window, "cluster", "8xh100");
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.run.ranks, 8);
  desk.session.undo().undo();  // cluster and ranks are one step
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.run.ranks, 64);
}

TEST(ScenarioJourney, TheFormSaysWhatRunsOnGpusWhereNobodyChose) {
  test::Desk desk(Document::open("demo"));
  const auto* software = qobject_cast<QComboBox*>(form(desk.window).field("run.software"));
  ASSERT_NE(software, nullptr);
  EXPECT_EQ(software->lineEdit()->placeholderText(), "zerolab") << "this machine";
  const auto* precision = qobject_cast<QComboBox*>(form(desk.window).field("run.precision"));
  EXPECT_EQ(precision->lineEdit()->placeholderText(), "fp32");
  choose(desk.window, "cluster", "8xh100");
  desk.session.wait();
  EXPECT_EQ(software->currentText(), "");
  EXPECT_EQ(software->lineEdit()->placeholderText(), "torch-fsdp2-compile");
  EXPECT_EQ(precision->currentText(), "");
  EXPECT_EQ(precision->lineEdit()->placeholderText(), "bf16");
  EXPECT_EQ(desk.session.study()->strategies[0].result.setup.software, "torch-fsdp2-compile");
}

TEST(ScenarioJourney, AScenarioHasItsNameUntilItIsAnother) {
  test::Desk desk(Document::open("demo"));
  EXPECT_EQ(desk.session.study()->scenario.name, "demo");
  desk.session.edit_key("run.steps", "7");
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.name, "demo, changed");
  desk.session.edit_key("run.steps", "8");
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.name, "demo, changed");
  desk.session.edit_key("run.steps", "20");
  EXPECT_EQ(desk.session.document(), Document::open("demo")) << "as it was opened";
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->scenario.name, "demo");
}

TEST(ScenarioJourney, EveryBadFieldIsMarkedNothingMovesAndTheChartsAreDimmed) {
  test::Desk desk(test::llama_on_a_node());
  MainWindow& window = desk.window;
  ScenarioDock& dock = form(window);
  const auto study = desk.session.study();
  const QPoint seed = dock.field("run.seed")->mapTo(&dock, QPoint());
  const auto* plot = window.view("memory")->findChild<Plot*>();
  EXPECT_FALSE(plot->stale());
  desk.session.edit_key("model", "llama3-8c");
  desk.session.edit_key("run.micro_batch", "0");
  desk.session.edit_key("run.device_memory", "16 bananas");
  desk.session.wait();
  for (const char* key : {"model", "run.micro_batch", "run.device_memory"}) {
    EXPECT_FALSE(dock.error_at(key).isEmpty()) << key;
  }
  EXPECT_TRUE(dock.error_at("run.seed").isEmpty());
  EXPECT_TRUE(dock.error_at("model").contains("llama3-8b")) << "and the nearest name";
  EXPECT_TRUE(window.notices().problem_text().contains("llama3-8b on 8xh100 as it was before"));
  EXPECT_EQ(desk.session.study(), study);
  EXPECT_TRUE(plot->stale());
  EXPECT_EQ(dock.field("run.seed")->mapTo(&dock, QPoint()), seed) << "a field that moves is missed";
  window.training().start();
  EXPECT_FALSE(window.training().controller().running())
      << "not a run of what the form does not say";
  EXPECT_TRUE(window.training().state().startsWith("Not started"));
  desk.session.undo().undo();
  desk.session.undo().undo();
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_TRUE(dock.error_at("model").isEmpty());
  EXPECT_EQ(window.notices().problem_text(), QString());
  EXPECT_FALSE(window.training().state().contains("wrong")) << "it no longer is";
  EXPECT_FALSE(plot->stale());
}

TEST(ScenarioJourney, AddedStrategiesSayWhatTheyAre) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-0", "zero-3"}));
  desk.session.set_baseline("zero-0");
  const Study& study = *desk.session.study();
  std::set<std::string> names;
  for (const Variation& each : sweep_variations(study, study.strategies[0])) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
  for (const char* name : {"zero-3", "zero-2 + recompute", "zero-3 + offload all",
                           "zero-1 + recompute auto + offload optimizer + micro-batch 4"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  // What is in the scenario already is pointed at: the same numbers under one name.
  for (const Variation& each : sweep_variations(study, study.strategies[0])) {
    if (each.name != "zero-3") continue;
    ASSERT_EQ(same_strategy(study, each), &study.strategies[1]);
  }
  desk.window.show_view("fit");
  auto* fit = qobject_cast<FitPage*>(desk.window.view("fit"));
  ASSERT_TRUE(test::eventually([&] { return fit->table()->rowCount() > 0; }));
  for (int row = 0; !desk.session.undo().canUndo() && row < fit->table()->rowCount(); ++row) {
    fit->apply(row);
  }
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->strategies.size(), 3u);
  EXPECT_NE(desk.session.study()->find("zero-0"), nullptr) << "the baseline stays";
  EXPECT_EQ(desk.session.baseline(), "zero-0");
}

}  // namespace
}  // namespace zl::gui
