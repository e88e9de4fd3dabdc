// What people do from beginning to end.
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
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
#include "gui/views/prompt_box.h"
#include "gui/views/runs_page.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/trace_views.h"
#include "gui/views/train_page.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

BarPlot* memory_plot(MainWindow& window) {
  return qobject_cast<BarPlot*>(static_cast<ChartPage*>(window.view("memory"))->plot());
}

double total_of(const BarPlot* plot, std::size_t row) {
  return std::get<double>(plot->table().rows[row].back());
}

void type(ScenarioDock& dock, const char* key, const QString& text) {
  auto* line = qobject_cast<QLineEdit*>(dock.field(key));
  ASSERT_NE(line, nullptr);
  line->setFocus();
  line->selectAll();
  QTest::keyClicks(line, text);
  QTest::keyClick(line, Qt::Key_Return);
}

TEST(Journey, AnEditIsFollowedByEveryViewAndCanBeUndone) {
  test::Desk desk(test::llama_on_a_node());
  auto* dock = desk.window.findChild<ScenarioDock*>();
  const BarPlot* plot = memory_plot(desk.window);
  const double before = total_of(plot, 4);
  type(*dock, "run.micro_batch", "2");
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
  auto* dock = desk.window.findChild<ScenarioDock*>();
  const std::pair<const char*, const char*> wrong[] = {
      {"run.micro_batch", "0"}, {"run.ranks", "many"}, {"run.device_memory", "16 bananas"}};
  for (const auto& [key, text] : wrong) {
    const auto study = desk.session.study();
    type(*dock, key, text);
    desk.session.wait();
    EXPECT_FALSE(dock->error_at(key).isEmpty()) << key;
    EXPECT_EQ(desk.session.study(), study);
    desk.session.undo().undo();
    desk.session.wait();
    EXPECT_TRUE(dock->error_at(key).isEmpty()) << key;
  }
  desk.session.edit_key("model", "llama3-8c");
  desk.session.wait();
  EXPECT_TRUE(dock->error_at("model").contains("llama3-8b"));
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
  EXPECT_TRUE(page.ratio_text().contains("not decided"));
  for (const auto& row : page.metrics()->table().rows) {
    if (row[0] != Cell(std::string("step_time_seconds"))) continue;
    EXPECT_EQ(row[1], Cell(std::string("not decided"))) << "their errors could turn it";
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

TEST(Journey, ARealRunTrainsBeforeTheEyesAndLandsInTheDatabase) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-1"}).with("run.steps", "6"));
  TrainPage& page = desk.window.training();
  desk.window.show_view("train");
  std::vector<std::size_t> seen;
  QObject::connect(&page.controller(), &RunController::progressed, &page,
                   [&] { seen.push_back(page.losses()->data().curves.at(0).y.size()); });
  page.backend()->setCurrentText("cpu");
  page.start();
  EXPECT_TRUE(page.controller().running());
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_EQ(seen, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6})) << "the curve grew step by step";
  RunsPage& runs = desk.window.runs();
  runs.model().refresh();
  ASSERT_EQ(runs.model().rowCount(), 1);
  EXPECT_EQ(runs.model().run(0).outcome, Outcome::ok);
  EXPECT_EQ(runs.losses()->data().curves.at(0).y, page.losses()->data().curves.at(0).y);
  page.backend()->setCurrentText("sim");
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  runs.model().refresh();
  EXPECT_EQ(runs.model().predictions().size(), 1u) << "predicted and measured are one scenario";
}

TEST(Journey, AModelIsValidatedWhileItTrainsThenSavedAndTried) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-2"}).with("run.steps", "6"));
  TrainPage& page = desk.window.training();
  desk.window.show_view("train");
  std::string text;
  for (int i = 0; i < 200; ++i) text += "to be or not to be ";
  test::write_file(desk.path("held.txt"), text);
  page.use_validation(desk.folder.filePath("held.txt"));
  test::type_into(desk.window, "run.eval_every", "2");
  desk.session.wait();
  ASSERT_TRUE(desk.session.error().isEmpty()) << desk.session.error().toStdString();
  EXPECT_EQ(desk.session.study()->scenario.run.eval_every, 2);
  page.set_saved_models(desk.folder.filePath("model"));
  page.backend()->setCurrentText("cpu");
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  const auto& curves = page.losses()->data().curves;
  ASSERT_EQ(curves.size(), 2u) << page.state().toStdString();
  EXPECT_EQ(curves[1].name, "zero-2, validation");
  EXPECT_EQ(curves[1].x, (std::vector<double>{0, 2, 4, 6}));
  RunsPage& runs = desk.window.runs();
  runs.model().refresh();
  ASSERT_EQ(runs.losses()->data().curves.size(), 2u);
  EXPECT_EQ(runs.losses()->data().curves[1].y, curves[1].y);
  PromptBox& box = *page.prompt_box();
  EXPECT_EQ(box.model()->text(), desk.folder.filePath("model"));
  box.length()->setValue(5);
  box.prompt()->setText("to be");
  QTest::mouseClick(box.go(), Qt::LeftButton);
  ASSERT_TRUE(test::eventually([&] { return !box.prompter().running(); }));
  EXPECT_TRUE(box.state().startsWith("5 tokens, ")) << box.state().toStdString();
  EXPECT_TRUE(box.text().startsWith("to be"));
  EXPECT_GT(box.text().size(), 5);
}

TEST(Journey, TryingWhatIsNoModelSaysWhy) {
  test::Desk desk(test::tiny_study());
  PromptBox& box = *desk.window.training().prompt_box();
  box.go()->click();
  EXPECT_TRUE(box.state().startsWith("Choose the folder of a model first"));
  box.set_model(desk.folder.filePath("nothing"));
  box.go()->click();
  ASSERT_TRUE(test::eventually([&] { return !box.prompter().running(); }));
  EXPECT_TRUE(box.state().contains("nothing")) << box.state().toStdString();
}

// fp16 from a scale that overflows: what is predicted after a run is that run.
TEST(Journey, APredictionOfAnFp16RunSkipsItsSteps) {
  test::Desk desk(test::tiny_study());
  const std::string file = desk.path("scaled.json");
  test::write_file(file, R"({"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true,
                             "initial_scale_power": 30}, "zero_optimization": {"stage": 1}})");
  desk.window.open_file(QString::fromStdString(file));
  desk.session.wait();
  TrainPage& page = desk.window.training();
  const auto run = [&](const std::string& backend) {
    const auto study = desk.session.study();
    page.controller().start(study->scenario, {"scaled"}, backend, desk.path("runs.db"));
    return test::eventually([&] { return !page.controller().running(); });
  };
  ASSERT_TRUE(run("cpu"));
  ASSERT_TRUE(run("sim"));
  Store store = Store::open(desk.path("runs.db"), Store::Mode::read_only);
  const auto stored = store.list();
  ASSERT_EQ(stored.size(), 2U);
  ASSERT_TRUE(stored[0].predicted);
  const RunResult predicted = store.load(stored[0].id), real = store.load(stored[1].id);
  EXPECT_GT(real.skipped_steps, 0);
  EXPECT_EQ(predicted.skipped_steps, real.skipped_steps);
  EXPECT_EQ(predicted.op_count, real.op_count);
}

TEST(Journey, ACancelledRunKeepsItsSteps) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-0"}).with("run.steps", "100000"));
  TrainPage& page = desk.window.training();
  int steps = 0;
  QObject::connect(&page.controller(), &RunController::progressed, &page, [&] {
    if (++steps == 2) page.cancel();
  });
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_LT(steps, 1000);
  RunModel& runs = desk.window.runs().model();
  runs.refresh();
  ASSERT_EQ(runs.rowCount(), 1);
  EXPECT_EQ(runs.run(0).outcome, Outcome::interrupted);
  EXPECT_EQ(runs.run(0).steps, steps);
  EXPECT_TRUE(page.state().contains("1 interrupted")) << page.state().toStdString();
}

// A window and a session with a run of very many steps under way.
struct LongRun {
  explicit LongRun(const std::filesystem::path& database) {
    window = std::make_unique<MainWindow>(session, WindowOptions{database, ""});
    session.open(test::tiny_study().with_strategies({"zero-0"}).with("run.steps", "100000"));
    session.wait();
    QObject::connect(&window->training().controller(), &RunController::progressed, window.get(),
                     [this](const RunProgress& progress) { last_step = progress.step; });
    window->training().start();
  }
  bool has_begun() {
    return test::eventually([&] { return last_step > 0; });
  }

  Session session;
  std::unique_ptr<MainWindow> window;
  std::int64_t last_step = 0;
};

std::vector<RunSummary> stored_in(const std::filesystem::path& database) {
  return Store::open(database, Store::Mode::read_only).list();
}

// Waits for the step under way, no longer.
TEST(Journey, AWindowThatGoesAwayDuringARunEndsIt) {
  const QTemporaryDir folder;
  const std::filesystem::path database = folder.filePath("runs.db").toStdString();
  LongRun run(database);
  ASSERT_TRUE(run.has_begun());
  run.window.reset();
  EXPECT_LT(run.last_step, 100000);
  const auto stored = stored_in(database);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].outcome, Outcome::interrupted) << "its steps are kept";
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

TEST(Journey, AStoredRunIsRunAgain) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-0", "zero-1"}));
  TrainPage& page = desk.window.training();
  RunsPage& runs = desk.window.runs();
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
