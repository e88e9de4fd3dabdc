// What people do with the window itself: highlight and filter, sort, walk through the pages. Each
// step is checked before the next.
#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QHeaderView>
#include <QTableView>
#include <algorithm>
#include <map>

#include "gui/models/meaning.h"
#include "gui/models/strategy_model.h"
#include "gui/models/table_model.h"
#include "gui/plot/bar_plot.h"
#include "gui/plot/line_plot.h"
#include "gui/views/chart_page.h"
#include "gui/views/mesh_panel.h"
#include "gui/views/notice_bar.h"
#include "gui/views/pages.h"
#include "gui/views/strategy_view.h"
#include "gui/views/trace_views.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

const BarData& bars(MainWindow& window, const char* view) {
  auto* page = static_cast<ChartPage*>(window.view(view));
  return qobject_cast<BarPlot*>(page->plot())->data();
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

TEST(WindowJourney, TicksInARowMeetTheBoxesWhereTheyWereSeen) {
  test::Desk desk(test::llama_on_a_node());
  StrategyView& table = desk.window.strategies();
  QWidget* rows = table.table()->viewport();
  std::vector<QPoint> seen;
  for (const char* strategy : {"zero-0", "zero-1", "zero-3"}) {
    const QRect area = table.table()->visualRect(cell(table, strategy));
    seen.push_back(rows->mapToGlobal(QPoint(area.left() + 9, area.center().y())));
  }
  for (const QPoint& at : seen) {
    QTest::mouseClick(rows, Qt::LeftButton, {}, rows->mapFromGlobal(at));
    QCoreApplication::processEvents();  // what comes and goes is laid out
  }
  EXPECT_EQ(desk.session.hidden(), (QStringList{"zero-0", "zero-1", "zero-3"}));
  const MeshPanel& mesh = test::form(desk.window).mesh();
  EXPECT_FALSE(desk.session.hidden().contains(mesh.strategy())) << "nothing else shows that one";
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

TEST(WindowJourney, TheGlossaryWrapsItsLongLines) {
  test::Desk desk(test::tiny_study());
  for (QAction* action : desk.window.findChildren<QAction*>()) {
    if (action->text() == "&Glossary") action->trigger();
  }
  const auto* sheet = desk.window.findChild<QDialog*>();
  ASSERT_NE(sheet, nullptr);
  const auto* words = sheet->findChild<QTableView*>();
  const int last = words->model()->rowCount() - 1;
  EXPECT_GT(words->rowHeight(last), words->rowHeight(0) + words->fontMetrics().height() / 2)
      << words->model()->index(last, 1).data().toString().toStdString();
}

// As the program opens it: shown first, evaluated then.
TEST(WindowJourney, TheOverviewHasTwoColumnsWhereTheyFit) {
  const QTemporaryDir folder;
  Session session;
  MainWindow window(session, {folder.filePath("runs.db").toStdString(), ""});
  const auto side_by_side = [&window] {
    const auto charts = window.view("overview")->findChildren<ChartPage*>();
    return charts[0]->y() == charts[1]->y();
  };
  session.open(test::llama_on_a_node());
  window.resize(1280, 800);
  window.show();
  session.wait();
  EXPECT_TRUE(test::eventually(side_by_side));
  window.resize(1000, 800);
  EXPECT_TRUE(test::eventually([&] { return !side_by_side(); }));
  window.resize(1280, 800);
  EXPECT_TRUE(test::eventually(side_by_side));
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
