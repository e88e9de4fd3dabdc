// People who train: live curves, validation, the saved model, what is cancelled.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <filesystem>
#include <set>
#include <string>

#include "gui/models/table_model.h"
#include "gui/plot/line_plot.h"
#include "gui/views/prompt_box.h"
#include "gui/views/runs_page.h"
#include "gui/views/train_files.h"
#include "gui/views/train_page.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

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
  page.files()->use_validation(desk.folder.filePath("held.txt"));
  test::type_into(desk.window, "run.eval_every", "2");
  desk.session.wait();
  ASSERT_TRUE(desk.session.error().isEmpty()) << desk.session.error().toStdString();
  EXPECT_EQ(desk.session.study()->scenario.run.eval_every, 2);
  page.files()->set_models(desk.folder.filePath("model"));
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
  std::set<std::string> states;
  QObject::connect(&box.prompter(), &Prompter::said, &box,
                   [&] { states.insert(box.state().toStdString()); });
  QTest::mouseClick(box.go(), Qt::LeftButton);
  EXPECT_EQ(box.state(), "Reading the weights…");
  ASSERT_TRUE(test::eventually([&] { return !box.prompter().running(); }));
  EXPECT_EQ(states, std::set<std::string>{"Writing…"});
  EXPECT_TRUE(box.state().startsWith("5 tokens, ")) << box.state().toStdString();
  EXPECT_TRUE(box.text().startsWith("to be"));
  EXPECT_GT(box.text().size(), 5);
}

// The demo's own model reads bytes: another that trains on them forgets its language.
TEST(TrainJourney, AModelFolderIsReadWithItsOwnTokenizer) {
  test::Desk desk(Document::open("demo"));
  const std::string model = desk.path("model");
  std::filesystem::create_directory(model);
  test::write_file(model + "/tokenizer.json", "{}");
  test::write_file(model + "/config.json",
                   R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
      "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300,
      "max_position_embeddings": 64})");
  desk.window.training().files()->use_model(QString::fromStdString(model));
  desk.session.wait();
  ASSERT_TRUE(desk.session.error().isEmpty()) << desk.session.error().toStdString();
  const Scenario& chosen = desk.session.study()->scenario;
  EXPECT_EQ(chosen.model.vocab, 300);
  EXPECT_EQ(chosen.run.tokenizer, model);
  EXPECT_EQ(desk.session.study()->strategies[0].imported.strategy.micro_batch, 1)
      << "as from the form: not the demo's 2";
  desk.session.undo().undo();
  desk.session.wait();
  EXPECT_EQ(desk.session.document(), Document::open("demo")) << "one step";
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

TEST(TrainJourney, ACancelledRunGoesOnFromItsCheckpoint) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-1"}).with("run.steps", "100000"));
  TrainPage& page = desk.window.training();
  page.files()->set_checkpoint(desk.folder.filePath("kept"), 0, true);
  std::int64_t first = 0, last = 0;
  QObject::connect(&page.controller(), &RunController::progressed, &page,
                   [&](const RunProgress& progress) {
                     if (first == 0) first = progress.step;
                     last = progress.step;
                     if (progress.step >= first + 2) page.cancel();
                   });
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_EQ(first, 1) << "there was no checkpoint";
  const std::int64_t kept = last;
  first = 0;
  page.start();
  ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
  EXPECT_EQ(first, kept + 1) << page.state().toStdString();
  RunModel& runs = desk.window.runs().model();
  runs.refresh();
  ASSERT_EQ(runs.rowCount(), 2);
  EXPECT_EQ(runs.run(0).first_step, kept);
  EXPECT_EQ(page.losses()->data().curves.at(0).x.front(), static_cast<double>(kept + 1));
}

TEST(TrainJourney, WhereNothingIsLeftToTrainThatIsSaid) {
  test::Desk desk(test::tiny_study().with_strategies({"zero-1"}).with("run.steps", "3"));
  TrainPage& page = desk.window.training();
  page.files()->set_checkpoint(desk.folder.filePath("kept"), 0, true);
  for (const char* state :
       {"trained, stored as run 1", "nothing was left: the checkpoint is of step 3"}) {
    page.start();
    ASSERT_TRUE(test::eventually([&] { return !page.controller().running(); }));
    EXPECT_EQ(page.progress()->table().rows[0].back(), Cell(std::string(state)));
  }
  for (const Cell& cell : page.progress()->table().rows[0]) EXPECT_NE(cell, Cell(0.0));
}

TEST(TrainJourney, StepsBetweenCheckpointsAreANumber) {
  test::Desk desk(test::tiny_study());
  desk.window.show_view("train");
  QLineEdit* every = nullptr;
  for (auto* line : desk.window.training().findChildren<QLineEdit*>()) {
    if (line->accessibleName() == "Steps between checkpoints") every = line;
  }
  ASSERT_NE(every, nullptr);
  every->setFocus();
  QTest::keyClicks(every, "ten5x0");
  EXPECT_EQ(every->text(), "50");
  EXPECT_EQ(desk.window.training().files()->kept().checkpoint.every, 50);
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

}  // namespace
}  // namespace zl::gui
