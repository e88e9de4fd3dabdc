// Runs that end early, cannot be, are run again or deleted. Each step is checked before the next.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QMessageBox>
#include <QPushButton>
#include <QTableView>
#include <QTimer>

#include "gui/models/table_model.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/parallel_plot.h"
#include "gui/views/compare_page.h"
#include "gui/views/runs_page.h"
#include "gui/views/train_files.h"
#include "gui/views/train_page.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

// Clicks `answer` in every question that is asked while it lives; `text`: the last of them.
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

TEST(RunJourney, ClosingDuringARunAsks) {
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

TEST(RunJourney, ARunThatCannotBeIsNotFinished) {
  test::Desk desk(
      test::tiny_study().with_strategies({"zero-0", "zero-1"}).with("run.device_memory", "64KiB"));
  TrainPage& page = desk.window.training();
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_TRUE(page.state().startsWith("2 of 2 failed: 2 out_of_memory"))
      << page.state().toStdString();
}

TEST(RunJourney, ASimulatedRunThatIsRunAgainShowsItsOwnFiguresAndNoLoss) {
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

TEST(RunJourney, RunsAreDeletedOnlyWhenTheAnswerIsYes) {
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

TEST(RunJourney, AStoredRunIsRunAgain) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-0", "zero-1"}));
  TrainPage& page = desk.window.training();
  RunsPage& runs = desk.window.runs();
  page.files()->set_checkpoint(desk.folder.filePath("kept"), 0, true);
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  runs.model().refresh();
  ASSERT_EQ(runs.model().rowCount(), 2);
  EXPECT_EQ(runs.parallel()->table().rows.size(), 2u);
  EXPECT_EQ(runs.parallel()->table().columns.back().name, "learning rate");
  int row = runs.model().run(0).strategy == "zero-1" ? 0 : 1;
  runs.table()->selectRow(row);
  desk.session.open(test::llama_on_a_node());  // what is open now does not matter
  runs.train_again();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  runs.model().refresh();
  ASSERT_EQ(runs.model().rowCount(), 3);
  int of_zero_1 = 0;
  double loss = 0;
  for (row = 0; row < 3; ++row) {
    const RunSummary& run = runs.model().run(row);
    if (run.strategy != "zero-1") continue;
    EXPECT_TRUE(++of_zero_1 == 1 || run.final_loss == loss) << "the same run again";
    loss = run.final_loss;
  }
  EXPECT_EQ(of_zero_1, 2);
}

// Simulated runs of the strategies, in the database.
void store_simulated(test::Desk& desk) {
  TrainPage& page = desk.window.training();
  page.backend()->setCurrentText("sim");
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  desk.window.runs().model().refresh();
}

int column_named(const RunModel& model, const QString& name) {
  int column = 0;
  while (model.headerData(column, Qt::Horizontal, Qt::DisplayRole) != name) ++column;
  return column;
}

TEST(RunJourney, ARangeOfTheChartSelectsItsRunsHoweverTheTableIsSorted) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-0", "zero-1", "zero-3"}));
  store_simulated(desk);
  RunsPage& runs = desk.window.runs();
  ASSERT_EQ(runs.model().rowCount(), 3);
  const int strategy = column_named(runs.model(), "strategy");
  auto* filter = runs.findChild<QLineEdit*>();
  // The chart is made anew with the filter, and not with the order.
  for (const auto& [order, typed] :
       {std::pair(Qt::AscendingOrder, ""), std::pair(Qt::AscendingOrder, "zero"),
        std::pair(Qt::DescendingOrder, "zero")}) {
    runs.table()->sortByColumn(strategy, order);
    filter->setText(typed);
    constexpr int kStrategyAxis = 2;
    runs.parallel()->brush(kStrategyAxis, ParallelPlot::Range(1.5, 2.5));
    ASSERT_EQ(runs.selected().size(), 1u);
    for (int row = 0; row < 3; ++row) {
      const RunSummary& run = runs.model().run(row);
      EXPECT_EQ(run.id == runs.selected()[0], run.strategy == "zero-3") << run.strategy;
    }
    runs.parallel()->brush(kStrategyAxis, std::nullopt);
  }
}

TEST(RunJourney, WhatIsSelectedStaysSoWhenARunJoins) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-0", "zero-1"}));
  store_simulated(desk);
  RunsPage& runs = desk.window.runs();
  runs.table()->selectRow(1);
  const auto chosen = runs.selected();
  ASSERT_EQ(chosen.size(), 1u);
  store_simulated(desk);
  ASSERT_EQ(runs.model().rowCount(), 4);
  EXPECT_EQ(runs.selected(), chosen);
}

TEST(RunJourney, TwoRunsOfOneStrategyAreTwoCurves) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-1"}));
  store_simulated(desk);
  store_simulated(desk);
  RunsPage& runs = desk.window.runs();
  ASSERT_EQ(runs.model().rowCount(), 2);
  Q_EMIT runs.compare(runs.model().run(0).id, runs.model().run(1).id);
  const LinePlot& plot = *desk.window.comparison().memory();
  ASSERT_TRUE(test::eventually([&] { return plot.data().curves.size() == 2; }));
  EXPECT_NE(plot.data().curves[0].style, plot.data().curves[1].style);
}

}  // namespace
}  // namespace zl::gui
