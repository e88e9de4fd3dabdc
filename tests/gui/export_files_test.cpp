// Files for other programs, as the File menu writes them.
#include "gui/export_files.h"

#include <gtest/gtest.h>

#include <QAction>
#include <QFile>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "results/environment.h"
#include "results/store.h"
#include "scenarios/run/stored_run.h"
#include "tests/gui/helpers.h"
#include "tests/results/unpickle.h"
#include "tests/results/xml_reader.h"

namespace zl::gui {
namespace {

std::string contents(const std::string& path) {
  QFile file(QString::fromStdString(path));
  EXPECT_TRUE(file.open(QIODevice::ReadOnly));
  return file.readAll().toStdString();
}

QString text(const std::string& path) { return QString::fromStdString(path); }

TEST(ExportFiles, ATraceOfEveryStrategyShown) {
  test::Desk desk(test::tiny_study());
  desk.session.hide({"zero-0", "zero-2", "zero-3-recompute"});
  const std::string file = desk.path("trace.json");
  save_perfetto(*desk.session.study(), desk.session.shown(), text(file));
  std::set<std::string> names;
  const auto json = nlohmann::json::parse(contents(file));
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "process_name") names.insert(event["args"]["name"]);
  }
  EXPECT_EQ(names, (std::set<std::string>{"zero-1 on sim, ranks 0-1", "zero-3 on sim, ranks 0-1"}));
}

TEST(ExportFiles, TheSnapshotPeaksWhereTheTableSays) {
  test::Desk desk(test::tiny_study());
  const StrategyStudy& strategy = *desk.session.study()->find("zero-2");
  const std::string file = desk.path("memory.pickle");
  save_memory_snapshot(strategy, text(file));
  const auto snapshot = zl::test::unpickle(contents(file));
  std::int64_t now = 0, peak = 0;
  for (const auto& event : snapshot.at("device_traces").list.at(0).list) {
    const std::string& action = event.at("action").text;
    if (action == "alloc") now += event.at("size").number;
    if (action == "free_completed") now -= event.at("size").number;
    peak = std::max(peak, now);
  }
  EXPECT_EQ(peak, strategy.result.peak_device.total());
}

TEST(ExportFiles, AReportOfTheDatabase) {
  test::Desk desk(test::tiny_study());
  const std::string database = desk.path("stored.db"), page = desk.path("report.html");
  const Study& study = *desk.session.study();
  {
    Store store = Store::open(database, Store::Mode::read_write);
    EXPECT_THROW(save_report(database, text(page)), Error) << "nothing is stored";
    for (const StrategyStudy& each : study.strategies) {
      store_run(store, study.scenario, each.imported, each.result, detect_environment());
    }
  }
  save_report(database, text(page));
  const auto rows =
      zl::test::table_rows(zl::test::XmlReader::read(contents(page)), "Summary: Runs");
  EXPECT_EQ(rows.size(), study.strategies.size() + 1);
  save_report(database, text(desk.path("report.md")));
  EXPECT_EQ(contents(desk.path("report.md")).rfind("# zerolab report", 0), 0u);
  EXPECT_THROW(save_report(database, text(desk.path("no/folder.html"))), Error);
}

TEST(ExportFiles, AReportOfWhatIsShown) {
  test::Desk desk(test::tiny_study());
  const std::string page = desk.path("shown.html");
  desk.session.hide({"zero-0"});
  save_study_report(*desk.session.study(), desk.session.shown(), text(page));
  const auto rows =
      zl::test::table_rows(zl::test::XmlReader::read(contents(page)), "Summary: Runs");
  EXPECT_EQ(rows.size(), desk.session.shown().size() + 1) << "and the head";
  EXPECT_THROW(save_study_report(*desk.session.study(), {}, text(page)), Error);
}

TEST(ExportFiles, TheMenuHasThemAndNoShortcutTwice) {
  test::Desk desk(test::tiny_study());
  std::set<QString> seen;
  for (const QAction* action : desk.window.findChildren<QAction*>()) {
    const QString keys = action->shortcut().toString();
    if (keys.isEmpty()) continue;
    EXPECT_TRUE(seen.insert(keys).second) << keys.toStdString();
  }
  for (const char* keys : {"Ctrl+Shift+P", "Ctrl+Shift+Y", "Ctrl+Shift+R"}) {
    EXPECT_EQ(seen.count(keys), 1u) << keys;
  }
}

}  // namespace
}  // namespace zl::gui
