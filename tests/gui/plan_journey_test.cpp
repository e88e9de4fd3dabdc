// The Plan page: a question, plans while they are found, one of them in every other page.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTableView>
#include <algorithm>
#include <vector>

#include "core/base/files.h"
#include "gui/models/plan_data.h"
#include "gui/models/table_model.h"
#include "gui/plot/scatter_plot.h"
#include "gui/views/plan_page.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

QPushButton* button(PlanPage& page, const QString& text) {
  for (auto* each : page.findChildren<QPushButton*>()) {
    if (each->text().remove('&') == text) return each;
  }
  return nullptr;
}

struct PlanJourney : testing::Test {
  test::Desk desk{test::llama_on_a_node().with_strategies({"zero-3"})};
  PlanPage& page = dynamic_cast<PlanPage&>(*desk.window.view("plan"));

  void find() {
    desk.window.show_view("plan");
    page.start();
    ASSERT_TRUE(test::eventually([&] { return !page.running(); }));
  }
};

TEST_F(PlanJourney, APlanIsOneClickFromEveryOtherPage) {
  page.batch()->setText("16");
  page.limits()->setText("micro_batch=1, pipeline=1");
  find();
  ASSERT_GE(page.table()->rowCount(), 2) << page.state().toStdString();
  EXPECT_TRUE(page.state().contains(" recorded in full")) << page.state().toStdString();
  const std::string best = std::get<std::string>(page.table()->table().rows[0][1]);
  EXPECT_TRUE(button(page, "Add to the scenario")->isEnabled()) << "the best is selected";
  button(page, "Add to the scenario")->click();
  desk.session.wait();
  ASSERT_EQ(desk.session.study()->strategies.size(), 2U);
  const StrategyStudy& added = desk.session.study()->strategies[1];
  EXPECT_TRUE(added.fits()) << "what was planned fits";
  EXPECT_EQ(added.imported.strategy.micro_batch, 1);
  EXPECT_EQ(desk.session.selection(), QStringList(QString::fromStdString(added.name())));
  for (const char* view : {"timeline", "memory", "compare"}) {
    EXPECT_TRUE(desk.window.show_view(view)) << view;
  }
  // The scenario is the same but for its strategies: its plans still hold.
  desk.window.show_view("plan");
  EXPECT_TRUE(button(page, "Add to the scenario")->isEnabled());
  button(page, "Add to the scenario")->click();
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->strategies.size(), 2U) << "it is there already";
  EXPECT_TRUE(page.state().contains("in the scenario already")) << page.state().toStdString();
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_EQ(desk.session.study()->strategies.size(), 1U);
  EXPECT_TRUE(page.state().contains("combinations")) << page.state().toStdString();
}

TEST_F(PlanJourney, APlanLeavesAsAReportAndAsConfigurations) {
  EXPECT_FALSE(button(page, "Report…")->isEnabled()) << "nothing was found yet";
  EXPECT_FALSE(button(page, "Copy for")->isEnabled());
  page.batch()->setText("16");
  page.limits()->setText("micro_batch=1,pipeline=1,tensor=1,zero=1,recompute=full");
  find();
  ASSERT_TRUE(page.has_plans()) << page.state().toStdString();
  QMenu* launch = button(page, "Copy for")->menu();
  for (QAction* each : launch->actions()) {
    if (each->text() == "deepspeed") each->trigger();
  }
  const QString copied = QApplication::clipboard()->text();
  EXPECT_TRUE(copied.contains("\"zero_optimization\"")) << copied.toStdString();
  EXPECT_TRUE(page.state().startsWith("Copied for deepspeed.")) << page.state().toStdString();
  // What a software does not have is said, and the clipboard stays.
  page.copy_launch(LaunchSoftware::accelerate);
  EXPECT_TRUE(page.state().contains("accelerate")) << page.state().toStdString();
  EXPECT_EQ(QApplication::clipboard()->text(), copied);
  page.save_report(QString::fromStdString(desk.path("plan.html")));
  const std::string html = read_file(desk.path("plan.html"));
  for (const char* part : {"Plan: llama3-8b on 8xh100", "How to run it", "zero_optimization",
                           "Memory and throughput", "Why in this order", "<svg"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST_F(PlanJourney, WhatIsFoundIsWhatTheCommandLineFinds) {
  page.batch()->setText("16");
  page.limits()->setText("micro_batch<=2,pipeline=1");
  find();
  PlanRequest request;
  request.scenario = plan_scenario(desk.session.document());
  request.global_batch = 16;
  request.limits = parse_limits("micro_batch<=2,pipeline=1");
  const Plans plans = find_plans(request);
  ASSERT_EQ(page.table()->rowCount(), static_cast<int>(shown_plans(plans).size()));
  const std::vector<Column> columns = page.table()->table().columns;
  const auto speed = static_cast<std::size_t>(
      std::ranges::find(columns, "tokens/s", &Column::name) - columns.begin());
  for (std::size_t i = 0; i < plans.best.size(); ++i) {
    EXPECT_EQ(std::get<std::int64_t>(page.table()->table().rows[i][speed]),
              std::llround(plans.best[i].result.tokens_per_second));
  }
  EXPECT_FALSE(page.plot()->table().rows.empty());
  button(page, "Copy as command")->click();
  const std::string command = QApplication::clipboard()->text().toStdString();
  EXPECT_TRUE(command.starts_with("zerolab plan ")) << command;
  EXPECT_TRUE(command.ends_with(" --global-batch 16 --constrain 'micro_batch<=2,pipeline=1'"))
      << command;
}

TEST_F(PlanJourney, PlansOfAnotherScenarioAreNotAdded) {
  page.batch()->setText("16");
  page.limits()->setText("micro_batch=1,pipeline=1,zero=3");
  find();
  ASSERT_GE(page.table()->rowCount(), 1);
  desk.session.edit_key("run.sequence_length", "1024");
  desk.session.wait();
  EXPECT_FALSE(button(page, "Add to the scenario")->isEnabled());
  EXPECT_TRUE(page.state().contains("has changed")) << page.state().toStdString();
  page.add(0);
  EXPECT_EQ(desk.session.document().strategies().size(), 1U);
}

// Of the table's text and of the page's: told apart on the screen.
bool is_dim(PlanPage& page) {
  const auto* view = page.findChild<QTableView*>();
  const bool text = view->palette().color(QPalette::Text) != page.palette().color(QPalette::Text);
  EXPECT_EQ(text, page.plot()->stale()) << "chart and table are dimmed together";
  return text;
}

TEST_F(PlanJourney, PlansOfAnotherQuestionAreDimmed) {
  page.batch()->setText("16");
  page.limits()->setText("micro_batch=1,pipeline=1,zero=3");
  find();
  ASSERT_GE(page.table()->rowCount(), 1);
  EXPECT_FALSE(is_dim(page));
  page.limits()->setText("micro_batch=1, pipeline=1, zero=3");
  EXPECT_FALSE(is_dim(page)) << "blanks ask nothing else";
  page.limits()->setText("micro_batch=1");
  EXPECT_TRUE(is_dim(page));
  page.limits()->setText("micro_batch=1,pipeline=1,zero=3");
  EXPECT_FALSE(is_dim(page)) << "the question is theirs again";
  page.batch()->setText("32");
  EXPECT_TRUE(is_dim(page));
  page.batch()->setText("16");
  page.goal()->setCurrentText("memory");
  EXPECT_TRUE(is_dim(page));
  page.goal()->setCurrentText("throughput");
  desk.session.edit_key("run.sequence_length", "1024");
  desk.session.wait();
  EXPECT_TRUE(is_dim(page));
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_FALSE(is_dim(page));
  page.limits()->setText("micro_batch=1,pipeline=1,zero=2");
  find();
  EXPECT_FALSE(is_dim(page)) << "what was asked anew is answered";
}

TEST_F(PlanJourney, BadQuestionsAreSaidAndStopStops) {
  page.batch()->setText("many");
  desk.window.show_view("plan");
  page.start();
  EXPECT_FALSE(page.running());
  EXPECT_TRUE(page.state().contains("\"many\"")) << page.state().toStdString();
  page.batch()->setText("16");
  page.limits()->setText("tenser=2");
  page.start();
  EXPECT_TRUE(page.state().contains("unknown key")) << page.state().toStdString();
  page.limits()->clear();
  page.start();
  ASSERT_TRUE(page.running());
  button(page, "Stop")->click();
  EXPECT_FALSE(page.running());
  EXPECT_EQ(page.state(), "Stopped.");
  QTest::qWait(200);
  EXPECT_EQ(page.state(), "Stopped.") << "what the search still says counts no more";
  page.limits()->setText("micro_batch=7");
  find();
  EXPECT_TRUE(page.state().contains("micro_batch")) << page.state().toStdString();
}

// Before the search has ended, something is there.
TEST(PlanRequests, TheFirstAnswerComesBeforeTheLast) {
  PlanRequest request;
  request.scenario = plan_scenario(test::llama_on_a_node());
  request.global_batch = 16;
  request.top = 3;
  std::vector<Plans> shown;
  PlanHooks hooks;
  hooks.found = [&](const Plans& so_far) { shown.push_back(so_far); };
  const Plans plans = find_plans(request, hooks);
  ASSERT_GE(shown.size(), 2U);
  EXPECT_EQ(shown.front().best.size(), 1U) << "the best of the likely ones";
  EXPECT_LT(shown.front().counts.combinations, plans.counts.combinations / 10);
  ASSERT_EQ(shown.back().best.size(), plans.best.size());
  for (std::size_t i = 0; i < plans.best.size(); ++i) {
    EXPECT_EQ(shown.back().best[i].strategy.strategy, plans.best[i].strategy.strategy);
  }
  const Plans unseen = find_plans(request);
  ASSERT_EQ(unseen.best.size(), plans.best.size());
  EXPECT_EQ(unseen.best.front().strategy.strategy, plans.best.front().strategy.strategy);
}

}  // namespace
}  // namespace zl::gui
