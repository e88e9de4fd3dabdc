// What charts and windows of every size have room for.
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QFontMetricsF>
#include <QHeaderView>
#include <QLabel>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>

#include "gui/plot/bar_plot.h"
#include "gui/views/explain_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/pages.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

// Rows of a bar chart stand below each other, not on each other.
void expect_rows_apart(const BarPlot& plot) {
  const double line = QFontMetricsF(plot.font()).height();
  for (std::size_t i = 1; i < plot.marks().size(); ++i) {
    const Mark &above = plot.marks()[i - 1], &below = plot.marks()[i];
    if (above.row == below.row) continue;
    EXPECT_GE(below.area.center().y() - above.area.center().y(), line)
        << plot.title().toStdString() << ", " << plot.height() << " pixels high";
  }
}

TEST(BarPlot, ALegendOfManyLinesLeavesTheRowsTheirHeight) {
  BarPlot plot("Traffic");
  BarData data;
  for (int i = 0; i < 10; ++i)
    data.series.push_back(QString("collective %1 over some link").arg(i));
  data.series.push_back("never");
  for (int i = 0; i < 9; ++i) data.rows.push_back({"row", std::vector<double>(11, 1), {}, false});
  for (BarRow& row : data.rows) row.values.back() = 0;
  plot.set_data(data);
  for (const int width : {300, 460, 900}) {
    plot.resize(width, 10);
    plot.resize(width, plot.minimumSizeHint().height());
    plot.grab();
    expect_rows_apart(plot);
  }
}

void expect_whole(const QWidget& page, const std::string& name) {
  for (const QLabel* label : page.findChildren<QLabel*>()) {
    if (!label->isVisible() || label->text().isEmpty()) continue;
    const std::string text = name + ": " + label->text().toStdString();
    if (label->wordWrap()) {
      // An answer that came just now is laid out in a moment.
      EXPECT_TRUE(test::eventually([label] {
        return label->height() >= label->heightForWidth(label->width());
      })) << text;
    } else if (label->sizePolicy().horizontalPolicy() != QSizePolicy::Ignored) {
      EXPECT_GE(label->width() + 1, label->sizeHint().width()) << text;
    }
  }
  for (const QAbstractButton* button : page.findChildren<QAbstractButton*>()) {
    if (!button->isVisible() || button->text().isEmpty()) continue;
    EXPECT_GE(button->width() + 1, button->minimumSizeHint().width())
        << name << ": " << button->text().toStdString();
  }
}

void expect_marks_inside(const Plot& plot, const std::string& name) {
  EXPECT_FALSE(plot.accessibleName().isEmpty());
  if (const auto* bars = qobject_cast<const BarPlot*>(&plot)) expect_rows_apart(*bars);
  for (const Mark& mark : plot.marks()) {
    EXPECT_TRUE(QRectF(plot.rect()).adjusted(-1, -1, 1, 1).contains(mark.area))
        << name << ": " << mark.text.toStdString();
  }
}

// Charts ask for their height once they know their width, labels when an answer has come.
void settle() {
  for (int i = 0; i < 3; ++i) QCoreApplication::processEvents();
}

// Every page at three sizes: marks inside their chart, no label cut, nothing to scroll to sideways.
TEST(Window, NothingIsClipped) {
  test::Desk desk(test::llama_on_a_node());
  for (const QSize size : {QSize(800, 600), QSize(1280, 800), QSize(2560, 1600)}) {
    desk.window.resize(size);
    for (const QString& view : MainWindow::view_names()) {
      ASSERT_TRUE(desk.window.show_view(view));
      settle();
      desk.window.grab();
      const std::string name = QString("%1 at %2").arg(view).arg(size.width()).toStdString();
      for (const Plot* plot : desk.window.view(view)->findChildren<Plot*>()) {
        if (plot->isVisible()) expect_marks_inside(*plot, name);
      }
      const auto* area = qobject_cast<const QScrollArea*>(desk.window.pages().page(view));
      EXPECT_EQ(area->horizontalScrollBar()->maximum(), 0) << name << " scrolls sideways";
      expect_whole(desk.window, name);
    }
  }
}

TEST(Window, TheOverviewOfTwelveStrategiesIsInSightAtOnce) {
  test::Desk desk(test::llama_on_a_node().with_strategies(
      {"zero-0", "zero-1", "zero-2", "zero-3", "zero-3-recompute", "zero-2-offload-cpu",
       "zero-3-offload-cpu", "zero-3-offload-nvme", "onebit-adam", "onebit-lamb", "zero-one-adam",
       "hsdp-8"}));
  desk.window.resize(1280, 800);
  ASSERT_TRUE(desk.window.show_view("overview"));
  settle();
  desk.window.grab();
  const auto* area = qobject_cast<const QScrollArea*>(desk.window.pages().page("overview"));
  EXPECT_EQ(area->verticalScrollBar()->maximum(), 0);
  for (const auto* plot : desk.window.view("overview")->findChildren<BarPlot*>()) {
    double last = 0;
    for (const Mark& mark : plot->marks()) {
      EXPECT_TRUE(QRectF(plot->rect()).contains(mark.area)) << mark.text.toStdString();
      const double middle = mark.area.center().y();
      EXPECT_TRUE(middle == last || middle > last + 11) << plot->title().toStdString();
      last = middle;
    }
  }
}

TEST(Window, ALongNameDoesNotWidenTheForm) {
  test::Desk desk(test::llama_on_a_node().with_strategies(
      {"zero-3", R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
                     "x-zerolab": {"name": "zero-3 + recompute selective:attention,mlp + copies"}})"}));
  desk.window.resize(1280, 800);
  settle();
  const QWidget& form = test::form(desk.window);
  const int before = form.width();
  desk.session.select({QString::fromStdString(desk.session.study()->strategies[1].name())});
  settle();
  EXPECT_EQ(form.width(), before);
  EXPECT_LE(form.width(), form.parentWidget()->width());
}

// Their answers need more room than the pages that wait for them.
TEST(Window, AnswersFitASmallWindow) {
  test::Desk desk(test::tiny_study());
  desk.window.resize(800, 600);
  const auto expect_no_scrolling = [&](const char* name) {
    settle();
    const auto* area = qobject_cast<const QScrollArea*>(desk.window.pages().page(name));
    EXPECT_EQ(area->horizontalScrollBar()->maximum(), 0) << name;
    expect_whole(desk.window, name);
  };
  desk.window.show_view("explore");
  static_cast<ExplorePage*>(desk.window.view("explore"))->wait();
  expect_no_scrolling("explore");
  desk.window.show_view("explain");
  static_cast<ExplainPage*>(desk.window.view("explain"))->wait();
  expect_no_scrolling("explain");
  // What stands side by side in a wide window stands above each other, with rows to read.
  for (auto* table : desk.window.view("explain")->findChildren<QTableView*>()) {
    if (!table->isVisible()) continue;
    EXPECT_GT(table->width(), 300) << table->accessibleName().toStdString();
    EXPECT_GE(table->height(), 4 * table->verticalHeader()->defaultSectionSize());
  }
}

}  // namespace
}  // namespace zl::gui
