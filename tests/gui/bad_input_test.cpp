// What must not stop the dashboard: damaged and newer databases, typos, small windows, no display.
#include <gtest/gtest.h>

#include <QProcess>
#include <QProcessEnvironment>
#include <QTableView>

#include "core/base/error.h"
#include "gui/views/runs_page.h"
#include "tests/gui/helpers.h"
#include "tests/results/fixtures.h"

namespace zl::gui {
namespace {

TEST(BadInput, ADamagedDatabaseIsNamedAndTheRestWorks) {
  test::Desk desk(test::tiny_study());
  const std::string path = desk.path("damaged.db");
  test::write_file(path, "SQLite format 3" + std::string(1, '\0') + std::string(5000, 'x'));
  desk.window.open_file(QString::fromStdString(path));
  EXPECT_FALSE(desk.window.runs().model().error().isEmpty());
  EXPECT_EQ(desk.window.runs().model().rowCount(), 0);
  EXPECT_EQ(desk.session.study()->strategies.size(), 5u);
}

TEST(BadInput, ADatabaseThatIsMissingAppearsWhenItIsWritten) {
  test::Desk desk(test::tiny_study());
  RunsPage& runs = desk.window.runs();
  EXPECT_TRUE(runs.model().error().contains("no database yet"));
  Store::open(desk.path("runs.db"), Store::Mode::read_write)
      .save(zl::test::a_full_run(), zl::test::a_scenario(), zl::test::an_environment());
  runs.model().refresh();
  EXPECT_EQ(runs.model().rowCount(), 1);
  EXPECT_TRUE(runs.model().error().isEmpty());
}

TEST(BadInput, FilesThatAreNothingAreRefused) {
  test::Desk desk(test::tiny_study());
  const auto study = desk.session.study();
  test::write_file(desk.path("list.json"), "[1, 2]");
  test::write_file(desk.path("cut.json"), "{\"model\": ");
  for (const char* name : {"list.json", "cut.json", "missing.json"}) {
    desk.window.open_file(QString::fromStdString(desk.path(name)));
    desk.session.wait();
    EXPECT_EQ(desk.session.study(), study) << name;
  }
}

TEST(BadInput, AScenarioWithATypoSaysWhere) {
  test::Desk desk(test::tiny_study());
  test::write_file(desk.path("typo.json"), R"({"model": "gpt2-tiny", "run": {"rank": 2}})");
  desk.window.open_file(QString::fromStdString(desk.path("typo.json")));
  desk.session.wait();
  EXPECT_TRUE(desk.session.error().contains("run.rank")) << desk.session.error().toStdString();
  EXPECT_TRUE(desk.session.error().contains("ranks"));
}

TEST(BadInput, ASmallWindowStillShowsEveryView) {
  test::Desk desk(test::tiny_study());
  desk.window.resize(800, 600);
  for (const QString& name : MainWindow::view_names()) {
    desk.window.show_view(name);
    EXPECT_FALSE(desk.window.grab().isNull());
    EXPECT_LE(desk.window.width(), 800) << name.toStdString();
    EXPECT_LE(desk.window.height(), 600) << name.toStdString();
  }
}

struct Ended {
  int code = -1;
  QString errors;
};

Ended run_program(const QStringList& arguments, bool display) {
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
    environment.remove(name);
  }
  if (display) environment.insert("QT_QPA_PLATFORM", "offscreen");
  process.setProcessEnvironment(environment);
  process.start(ZL_GUI_PROGRAM, arguments);
  process.waitForFinished(test::kLong);
  const bool normal = process.exitStatus() == QProcess::NormalExit;
  return {normal ? process.exitCode() : -1, process.readAllStandardError()};
}

TEST(Program, WithoutADisplayItSaysSoInOneLine) {
  const Ended ended = run_program({}, false);
  EXPECT_EQ(ended.code, static_cast<int>(ErrorCode::unavailable));
  EXPECT_TRUE(ended.errors.startsWith("zerolab-gui: no display"));
  EXPECT_EQ(ended.errors.count('\n'), 1);
}

TEST(Program, ScreenshotsNeedNoDisplayAndEndWithTheRightCode) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("shot.png");
  const Ended good = run_program(
      {"--screenshot", file, "--scenario", "tiny-gpt2", "--view", "timeline", "--size", "900x700"},
      false);
  EXPECT_EQ(good.code, 0) << good.errors.toStdString();
  EXPECT_EQ(QImage(file).size(), QSize(900, 700));
  const Ended sharp = run_program({"--screenshot", file, "--scale", "2", "--dark"}, false);
  EXPECT_EQ(sharp.code, 0);
  EXPECT_EQ(QImage(file).size(), QSize(2560, 1600));
  EXPECT_EQ(run_program({"--screenshot", file, "--scenario", "dmeo"}, true).code, 3);
  EXPECT_EQ(run_program({"--screenshot", file, "--view", "nothing"}, true).code, 2);
  EXPECT_EQ(run_program({"--screenshot", file, "--size", "big"}, true).code, 2);
  EXPECT_EQ(run_program({"--screenshot", "/no/such/folder/a.png"}, true).code, 1);
}

}  // namespace
}  // namespace zl::gui
