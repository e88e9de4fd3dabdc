// What people do with the window itself: highlight and filter, choose a cluster, make mistakes,
// close it during a run. Each step is checked before the next.
#include <gtest/gtest.h>

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QHeaderView>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QTableView>
#include <QTimer>
#include <algorithm>
#include <map>
#include <set>

#include "gui/models/meaning.h"
#include "gui/models/strategy_model.h"
#include "gui/models/table_model.h"
#include "gui/plot/bar_plot.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/scatter_plot.h"
#include "gui/plot/timeline_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/fit_page.h"
#include "gui/views/notice_bar.h"
#include "gui/views/pages.h"
#include "gui/views/runs_page.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/trace_views.h"
#include "gui/views/train_page.h"
#include "scenarios/planner/sweep.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

using test::form;
using test::type_into;

const BarData& bars(MainWindow& window, const char* view) {
  auto* page = static_cast<ChartPage*>(window.view(view));
  return qobject_cast<BarPlot*>(page->plot())->data();
}

void choose(MainWindow& window, const char* key, const QString& text) {
  auto* combo = qobject_cast<QComboBox*>(form(window).field(key));
  ASSERT_NE(combo, nullptr);
  combo->setCurrentText(text);
  Q_EMIT combo->activated(combo->currentIndex());
}

// The row's place in the table as it is sorted now.
QModelIndex cell(StrategyView& view, const QString& strategy, int column = 0) {
  for (int row = 0; row < view.table()->model()->rowCount(); ++row) {
    const QModelIndex index = view.table()->model()->index(row, 0);
    if (index.data().toString().startsWith(strategy)) return index.siblingAtColumn(column);
  }
  return {};
}

void click(StrategyView& view, const QString& strategy) {
  const QRect area = view.table()->visualRect(cell(view, strategy, 1));
  QTest::mouseClick(view.table()->viewport(), Qt::LeftButton, {}, area.center());
}

TEST(WindowJourney, AClickHighlightsATickFiltersAndEscapeShowsAllAgain) {
  test::Desk desk(test::llama_on_a_node());
  QApplication::setActiveWindow(&desk.window);
  StrategyView& table = desk.window.strategies();
  click(table, "zero-3");
  EXPECT_EQ(desk.session.selection(), QStringList{"zero-3"});
  EXPECT_EQ(bars(desk.window, "memory").rows.size(), 5u) << "all stay";
  QAbstractItemModel* model = table.table()->model();
  ASSERT_TRUE(model->setData(cell(table, "zero-0"), Qt::Unchecked, Qt::CheckStateRole));
  EXPECT_EQ(bars(desk.window, "memory").rows.size(), 4u);
  EXPECT_EQ(desk.session.selection(), QStringList{"zero-3"}) << "what was highlighted stays so";
  table.table()->setFocus();
  QTest::keyClick(table.table(), Qt::Key_Escape);
  EXPECT_EQ(bars(desk.window, "memory").rows.size(), 5u);
  // From anywhere else too.
  ASSERT_TRUE(model->setData(cell(table, "zero-1"), Qt::Unchecked, Qt::CheckStateRole));
  EXPECT_EQ(bars(desk.window, "memory").rows.size(), 4u);
  QTest::keyClick(&desk.window, Qt::Key_Escape);
  EXPECT_EQ(bars(desk.window, "memory").rows.size(), 5u);
}

QStringList order(StrategyView& view) {
  QStringList names;
  for (int row = 0; row < view.table()->model()->rowCount(); ++row) {
    names << view.table()->model()->index(row, 0).data().toString().section("  ", 0, 0);
  }
  return names;
}

TEST(WindowJourney, TheSortStaysWhileBaselinesComeAndGo) {
  test::Desk desk(test::llama_on_a_node());
  StrategyView& table = desk.window.strategies();
  int column = 0;
  while (table.model().headerData(column, Qt::Horizontal, Qt::DisplayRole) != "tokens/s") ++column;
  table.table()->sortByColumn(column, Qt::DescendingOrder);
  const QStringList before = order(table);
  EXPECT_NE(before.first(), "zero-0");
  for (const char* baseline : {"zero-2", "zero-2", "zero-3"}) {  // pinned, let go, pinned
    desk.session.set_baseline(baseline);
    EXPECT_EQ(order(table), before);
    const int sorted = table.table()->horizontalHeader()->sortIndicatorSection();
    EXPECT_EQ(table.model().headerData(sorted, Qt::Horizontal, Qt::DisplayRole), "tokens/s");
  }
}

TEST(WindowJourney, AClusterBringsItsRanksUnlessTheyWereTyped) {
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

TEST(WindowJourney, TheFormSaysWhatRunsOnGpusWhereNobodyChose) {
  test::Desk desk(Document::open("demo"));
  const auto* software = qobject_cast<QComboBox*>(form(desk.window).field("run.software"));
  ASSERT_NE(software, nullptr);
  EXPECT_EQ(software->lineEdit()->placeholderText(), "zerolab") << "this machine";
  choose(desk.window, "cluster", "8xh100");
  desk.session.wait();
  EXPECT_EQ(software->currentText(), "");
  EXPECT_EQ(software->lineEdit()->placeholderText(), "torch-fsdp2-compile");
  EXPECT_EQ(desk.session.study()->strategies[0].result.setup.software, "torch-fsdp2-compile");
}

TEST(WindowJourney, AScenarioHasItsNameUntilItIsAnother) {
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

TEST(WindowJourney, EveryBadFieldIsMarkedNothingMovesAndTheChartsAreDimmed) {
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
  desk.session.undo().undo();
  desk.session.undo().undo();
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_TRUE(dock.error_at("model").isEmpty());
  EXPECT_EQ(window.notices().problem_text(), QString());
  EXPECT_FALSE(plot->stale());
}

TEST(WindowJourney, AnUncalibratedMachineIsSaidToBeOneOnEveryPage) {
  test::Desk desk(test::tiny_study());
  for (const QString& name : MainWindow::view_names()) {
    desk.window.show_view(name);
    EXPECT_TRUE(desk.window.notices().calibration_text().contains("not calibrated"))
        << name.toStdString();
  }
  desk.session.open(test::llama_on_a_node());
  desk.session.wait();
  EXPECT_EQ(desk.window.notices().calibration_text(), QString()) << "these are GPUs";
}

TEST(WindowJourney, AddedStrategiesSayWhatTheyAre) {
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

TEST(WindowJourney, ColoursDoNotDependOnWhatElseIsShown) {
  test::Desk desk(test::llama_on_a_node());
  const auto styles = [&] {
    const BarData& traffic = bars(desk.window, "traffic");
    std::map<QString, std::size_t> of;
    for (std::size_t i = 0; i < traffic.series.size(); ++i)
      of[traffic.series[i]] = traffic.styles[i];
    return of;
  };
  const auto all = styles();
  desk.session.hide({"zero-0", "zero-1"});
  for (const auto& [name, style] : styles()) EXPECT_EQ(all.at(name), style) << name.toStdString();
  EXPECT_EQ(style_of_strategy("zero-3"), 3u);
  const std::size_t mine = style_of_strategy("mine");
  EXPECT_NE(style_of_strategy("another of mine"), mine);
  EXPECT_EQ(style_of_strategy("mine"), mine);
  EXPECT_EQ(style_of(MemoryTag::gradient),
            style_of_move({"reduce_scatter", "data", "data", "nvlink4"}));
  EXPECT_EQ(style_of(MemoryTag::optimizer), style_of(TimePart::optimizer));
}

TEST(WindowJourney, MemoryOverTimeEndsWhereAStrategyEnds) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2", "zero-3-offload-cpu"}));
  desk.window.show_view("over-time");
  auto* page = qobject_cast<MemoryTimePage*>(desk.window.view("over-time"));
  const StrategyStudy& fast = desk.session.study()->strategies[0];
  const double end = static_cast<double>(fast.timeline().total) * 1e-12;
  const auto& curves = page->plot()->data().curves;
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_DOUBLE_EQ(curves[0].x.back(), end);
  ASSERT_GT(curves[1].x.back(), 1.5 * end) << "the slow one goes on";
  page->findChild<QComboBox*>()->setCurrentText("zero-2");
  page->plot()->set_cursor(1.4 * end);
  EXPECT_TRUE(page->moment().startsWith("zero-2 ended at ")) << page->moment().toStdString();
  EXPECT_EQ(page->live()->rowCount(), 0);
  page->plot()->grab();
  for (const Mark& mark : page->plot()->marks()) EXPECT_NE(mark.row, 0) << "no dot either";
  page->one_step()->setChecked(true);
  for (const Curve& curve : page->plot()->data().curves) {
    EXPECT_GE(curve.x.front(), 0);
    EXPECT_NEAR(curve.x.back(), 1, 1e-9) << curve.name.toStdString();
    EXPECT_TRUE(std::is_sorted(curve.x.begin(), curve.x.end()));
  }
  EXPECT_GT(page->live()->rowCount(), 0) << "at the peak of the step";
}

// A window whose run goes on for very many steps; `answer` is clicked when it asks.
struct Question {
  explicit Question(const QString& answer) {
    QObject::connect(&timer, &QTimer::timeout, &timer, [this, answer] {
      auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (box == nullptr) return;
      text = box->text();
      for (QAbstractButton* button : box->buttons()) {
        if (button->text().remove('&') == answer) button->click();
      }
    });
    timer.start(10);
  }
  QTimer timer;
  QString text;
};

TEST(WindowJourney, ClosingDuringARunAsks) {
  test::Desk desk(
      test::tiny_study().with_strategies({"zero-0", "zero-1"}).with("run.steps", "100000"));
  TrainPage& page = desk.window.training();
  std::int64_t steps = 0;
  QObject::connect(&page.controller(), &RunController::progressed, &page,
                   [&](const RunProgress& progress) { steps = progress.step; });
  page.start();
  ASSERT_TRUE(test::eventually([&] { return steps > 0; }));
  {
    const Question stay("Keep running");
    EXPECT_FALSE(desk.window.close());
    EXPECT_TRUE(stay.text.contains("zero-0: step")) << stay.text.toStdString();
  }
  EXPECT_TRUE(desk.window.isVisible());
  EXPECT_TRUE(page.controller().running());
  const std::int64_t then = steps;
  ASSERT_TRUE(test::eventually([&] { return steps > then + 1; })) << "it goes on";
  const Question stop("Stop it and close");
  EXPECT_TRUE(desk.window.close());
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_LT(steps, 100000);
  const Table& table = page.progress()->table();
  EXPECT_EQ(std::get<std::string>(table.rows[1].back()), "not started");
  EXPECT_TRUE(page.state().contains("1 interrupted, 1 not started")) << page.state().toStdString();
  RunModel& stored = desk.window.runs().model();
  stored.refresh();
  ASSERT_EQ(stored.rowCount(), 1);
  EXPECT_EQ(stored.run(0).outcome, Outcome::interrupted);
  EXPECT_GE(stored.run(0).steps, steps);
}

TEST(WindowJourney, ARunThatCannotBeIsNotFinished) {
  test::Desk desk(
      test::tiny_study().with_strategies({"zero-0", "zero-1"}).with("run.device_memory", "64KiB"));
  TrainPage& page = desk.window.training();
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_TRUE(page.state().startsWith("2 of 2 failed: 2 out_of_memory"))
      << page.state().toStdString();
}

TEST(WindowJourney, ASimulatedRunThatIsRunAgainShowsItsOwnFiguresAndNoLoss) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-1"}));
  TrainPage& page = desk.window.training();
  page.backend()->setCurrentText("sim");
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  page.backend()->setCurrentText("cpu");
  RunsPage& runs = desk.window.runs();
  runs.model().refresh();
  ASSERT_EQ(runs.model().rowCount(), 1);
  runs.table()->selectRow(0);
  runs.train_again();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_EQ(page.backend()->currentText(), "sim") << "what it runs on";
  for (const Curve& curve : page.losses()->data().curves) EXPECT_TRUE(curve.y.empty());
  const Table& table = page.progress()->table();
  const double median = desk.session.study()->strategies[0].result.step_time.median;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == "loss") {
      EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows[0][i]));
    }
    if (table.columns[i].name != "step time") continue;
    EXPECT_DOUBLE_EQ(std::get<double>(table.rows[0][i]), median);
  }
  EXPECT_TRUE(std::get<std::string>(table.rows[0].back()).starts_with("simulated"));
}

TEST(WindowJourney, RunsAreDeletedOnlyWhenTheAnswerIsYes) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-0", "zero-1"}));
  TrainPage& page = desk.window.training();
  page.backend()->setCurrentText("sim");
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  RunsPage& runs = desk.window.runs();
  runs.model().refresh();
  ASSERT_EQ(runs.model().rowCount(), 2);
  runs.table()->selectRow(0);
  const auto chosen = runs.selected();
  {
    const Question no("Cancel");
    runs.delete_selected();
    EXPECT_TRUE(no.text.contains(QString::number(chosen[0])));
  }
  EXPECT_EQ(runs.model().rowCount(), 2);
  const Question yes("Yes");
  runs.delete_selected();
  ASSERT_EQ(runs.model().rowCount(), 1);
  EXPECT_NE(runs.model().run(0).id, chosen[0]);
}

TEST(WindowJourney, AFileThatChangesIsReadAgainAndStandsOnlyOnceInTheScenario) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-0"}));
  const std::string file = desk.path("ds.json");
  const auto write = [&](const char* stage) {
    test::write_file(file, std::string(R"({"train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": )") +
                               stage + "}}");
  };
  const auto stage = [&] {
    const StrategyStudy* found = desk.session.study()->find("ds");
    return found ? found->imported.strategy.zero.stage : -1;
  };
  write("1");
  desk.window.open_file(QString::fromStdString(file));
  desk.session.wait();
  EXPECT_EQ(stage(), 1);
  write("2");
  desk.window.open_file(QString::fromStdString(file));
  desk.session.wait();
  EXPECT_EQ(stage(), 2) << "dropped again";
  EXPECT_EQ(desk.session.study()->strategies.size(), 2u);
  EXPECT_EQ(desk.session.error(), QString());
  // Named another way it is the same file.
  QDir().mkdir(desk.folder.filePath("below"));
  ASSERT_TRUE(QFile::link(QString::fromStdString(file), desk.folder.filePath("link.json")));
  for (const char* name : {"below/../ds.json", "link.json"}) {
    desk.window.open_file(QString::fromStdString(desk.path(name)));
    desk.session.wait();
    EXPECT_EQ(desk.session.study()->strategies.size(), 2u) << name;
    EXPECT_EQ(desk.session.error(), QString()) << name;
  }
  write("3");
  EXPECT_TRUE(test::eventually([&] { return stage() == 3; })) << "saved in an editor";
}

TEST(WindowJourney, TwoFilesOfOneNameLiveTogether) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-0"}));
  QDir(desk.folder.path()).mkpath("one");
  QDir(desk.folder.path()).mkpath("two");
  for (const char* file : {"one/ds.json", "two/ds.json"}) {
    test::write_file(desk.path(file), R"({"train_micro_batch_size_per_gpu": 1,
                                          "zero_optimization": {"stage": 2}})");
    desk.window.open_file(QString::fromStdString(desk.path(file)));
    desk.session.wait();
    EXPECT_EQ(desk.session.error(), QString());
  }
  EXPECT_NE(desk.session.study()->find("ds (one)"), nullptr);
  EXPECT_NE(desk.session.study()->find("ds (two)"), nullptr);
}

TEST(WindowJourney, PagesAreGroupedAndReachableByKey) {
  test::Desk desk(test::tiny_study());
  Pages& pages = desk.window.pages();
  EXPECT_EQ(pages.names(), MainWindow::view_names());
  QStringList groups;
  for (const QString& name : pages.names()) {
    if (groups.isEmpty() || groups.last() != pages.group(name)) groups << pages.group(name);
  }
  EXPECT_EQ(groups, (QStringList{"Decide", "Compare", "Inspect", "Train", "Runs"}));
  ASSERT_TRUE(desk.window.show_view("overview"));
  for (const QString& name : pages.names()) {
    EXPECT_EQ(pages.current(), name);
    pages.step(1);
  }
  EXPECT_EQ(pages.current(), "overview");
  EXPECT_FALSE(desk.window.show_view("nothing"));
  EXPECT_EQ(pages.current(), "overview");
}

}  // namespace
}  // namespace zl::gui
