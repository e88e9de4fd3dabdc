// What must not stop the dashboard: damaged and newer databases, typos, small windows, no display.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <QLineEdit>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTableView>
#include <set>

#include "core/base/error.h"
#include "gui/plot/bar_plot.h"
#include "gui/plot/scatter_plot.h"
#include "gui/theme.h"
#include "gui/views/prompt_box.h"
#include "gui/views/runs_page.h"
#include "gui/views/train_files.h"
#include "gui/views/train_page.h"
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

// The part of a widget that can be seen, in pixels of its window.
QRect seen_of(const QWidget& widget) {
  return widget.visibleRegion().boundingRect().translated(widget.mapTo(widget.window(), QPoint()));
}

bool has_color(const QImage& image, const QRect& area, const QColor& color) {
  for (int y = area.top(); y <= area.bottom(); ++y) {
    for (int x = area.left(); x <= area.right(); ++x) {
      if (image.pixelColor(x, y) == color) return true;
    }
  }
  return false;
}

// Whether bars and points in sight are painted where they say they are.
void expect_marks_painted(const QImage& window, const Plot& plot) {
  const QRect seen = seen_of(plot);
  const QPoint corner = plot.mapTo(plot.window(), QPoint());
  for (const Mark& mark : plot.marks()) {
    const QRect area = mark.area.toAlignedRect().translated(corner) & seen;
    if (area.width() < 8 || area.height() < 8) continue;
    bool painted = false;
    for (std::size_t i = 0; i < 8; ++i)
      painted = painted || has_color(window, area, series_color(i));
    EXPECT_TRUE(painted) << plot.title().toStdString() << ": " << mark.text.toStdString();
  }
}

TEST(BadInput, ASmallWindowStillShowsEveryView) {
  test::Desk desk(test::tiny_study());
  desk.window.resize(800, 600);
  int with_marks = 0;
  for (const QString& name : MainWindow::view_names()) {
    desk.window.show_view(name);
    QCoreApplication::processEvents();  // charts ask for their height once they know their width
    const QImage image = desk.window.grab().toImage();
    const QWidget* view = desk.window.view(name);
    const QRect seen = seen_of(*view);
    EXPECT_GT(seen.width(), 300) << name.toStdString();
    EXPECT_GT(seen.height(), 100) << name.toStdString();
    EXPECT_TRUE(has_color(image, seen, view->palette().windowText().color()))
        << name.toStdString() << " has no word";
    for (const Plot* plot : view->findChildren<Plot*>()) {
      const bool has_bodies = qobject_cast<const BarPlot*>(plot) != nullptr ||
                              qobject_cast<const ScatterPlot*>(plot) != nullptr;
      if (!plot->isVisible() || !has_bodies || plot->marks().empty()) continue;
      ++with_marks;
      expect_marks_painted(image, *plot);
    }
    EXPECT_LE(desk.window.width(), 800) << name.toStdString();
    EXPECT_LE(desk.window.height(), 600) << name.toStdString();
  }
  EXPECT_GE(with_marks, 4);
}

// While another program brings it up to date its version is the old one; then it is read by itself.
TEST(BadInput, ADatabaseBeingMigratedIsReadWhenItIsDone) {
  test::Desk desk(test::tiny_study());
  const std::string path = desk.path("old.db");
  Store::open(path, Store::Mode::read_write)
      .save(zl::test::a_full_run(), zl::test::a_scenario(), zl::test::an_environment());
  SQLite::Database raw(path, SQLite::OPEN_READWRITE);
  const int version = raw.execAndGet("PRAGMA user_version").getInt();
  raw.exec("PRAGMA user_version = 1");
  RunsPage& page = desk.window.runs();
  page.open(path);
  EXPECT_TRUE(page.model().error().contains("version 1")) << page.model().error().toStdString();
  EXPECT_EQ(page.model().rowCount(), 0);
  raw.exec("PRAGMA user_version = " + std::to_string(version));
  page.model().refresh();
  EXPECT_EQ(page.model().rowCount(), 1);
  EXPECT_TRUE(page.model().error().isEmpty());
}

TEST(Window, ARestartRestoresDocumentAndView) {
  const QTemporaryDir folder;
  const WindowOptions options{folder.filePath("runs.db").toStdString(),
                              folder.filePath("dashboard.ini")};
  Document edited;
  {
    Session session;
    MainWindow window(session, options);
    EXPECT_FALSE(window.restore()) << "nothing to restore at the first start";
    session.open(test::llama_on_a_node());
    session.edit_key("run.micro_batch", "2");
    edited = session.document();
    window.show_view("traffic");
    window.training().files()->set_models("/models of mine");
    window.training().files()->set_checkpoint("/checkpoints", 50, true);
    window.training().prompt_box()->set_model("/tuned");
    window.close();
  }
  Session session;
  MainWindow window(session, options);
  ASSERT_TRUE(window.restore());
  session.wait();
  EXPECT_EQ(session.document().text(), edited.text());
  EXPECT_EQ(session.study()->strategies[0].imported.strategy.micro_batch, 2);
  window.show();
  EXPECT_TRUE(window.view("traffic")->isVisible());
  const KeptFiles files = window.training().files()->kept();
  EXPECT_EQ(files.models, "/models of mine");
  EXPECT_EQ(files.checkpoint.folder, "/checkpoints");
  EXPECT_EQ(files.checkpoint.every, 50);
  EXPECT_TRUE(files.checkpoint.resume);
  EXPECT_EQ(window.training().prompt_box()->model()->text(), "/tuned");
}

TEST(Window, TabReachesEveryChart) {
  test::Desk desk(test::llama_on_a_node());
  int charts = 0;
  for (const QString& name : MainWindow::view_names()) {
    desk.window.show_view(name);
    std::set<QWidget*> reached;
    QWidget* next = desk.window.nextInFocusChain();
    for (; next != &desk.window && reached.insert(next).second;) next = next->nextInFocusChain();
    for (Plot* plot : desk.window.view(name)->findChildren<Plot*>()) {
      if (!plot->isVisible()) continue;
      ++charts;
      EXPECT_TRUE(plot->focusPolicy() & Qt::TabFocus) << plot->title().toStdString();
      EXPECT_TRUE(reached.count(plot)) << plot->title().toStdString();
      EXPECT_FALSE(plot->accessibleName().isEmpty());
    }
  }
  EXPECT_GE(charts, 14);
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
