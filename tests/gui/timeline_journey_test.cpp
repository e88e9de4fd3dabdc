// The timeline as people use it: keys at once, names by layer, ticks that differ, totals of a
// range, a search that counts, two strategies on one axis.
#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <map>

#include "gui/models/op_names.h"
#include "gui/models/table_model.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "gui/views/trace_views.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

TimelinePage* timeline(test::Desk& desk) {
  return qobject_cast<TimelinePage*>(desk.window.view("timeline"));
}

TEST(OpNames, EveryProductOfABlockHasItsName) {
  Session session;
  session.open(test::llama_on_a_node().with_strategies({"zero-2", "zero-3-recompute"}));
  session.wait();
  const Study& study = *session.study();
  const ModelConfig& model = study.scenario.model;
  for (const StrategyStudy& each : study.strategies) {
    const auto names = op_names(study, each);
    const auto& events = each.recording->trace.events();
    std::map<QString, int> count;  // of the names in block 7 of the second step
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!takes_time(events[i])) continue;
      const auto event = static_cast<std::int32_t>(i);
      EXPECT_FALSE(names->operation(event).startsWith("gemm ["))
          << names->whole(event).toStdString();
      if (events[i].scope.unit == 7 && events[i].scope.step == 2) ++count[names->operation(event)];
    }
    const int forwards = each.name() == "zero-2" ? 1 : 2;  // the second is the recomputation
    for (const char* product : {"qkv", "attention out", "mlp up and gate"}) {
      EXPECT_EQ(count[product], forwards) << each.name() << ": " << product;
      EXPECT_EQ(count[QString("%1, weight gradient").arg(product)], 1) << product;
      EXPECT_EQ(count[QString("%1, input gradient").arg(product)], 1) << product;
    }
    for (const char* norm : {"norm 1", "norm 2"}) {
      EXPECT_EQ(count[norm], forwards) << norm;
      EXPECT_EQ(count[QString("%1 backward").arg(norm)], 1) << norm;
    }
    EXPECT_EQ(count["attention"], forwards);
  }
  // Flops say which product is which, whatever its name: up and gate is twice as large as down.
  const auto names = op_names(study, study.strategies[0]);
  const auto& events = study.strategies[0].recording->trace.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const QString name = names->operation(static_cast<std::int32_t>(i));
    const auto tokens = static_cast<double>(study.scenario.run.sequence_length);
    if (name == "mlp down") {
      EXPECT_EQ(events[i].flops, 2 * tokens * double(model.ffn) * double(model.hidden));
    } else if (name == "mlp up and gate") {
      EXPECT_EQ(events[i].flops, 4 * tokens * double(model.ffn) * double(model.hidden));
    }
  }
}

TEST(TimelineJourney, KeysWorkAtOnceAndTicksDiffer) {
  test::Desk desk(test::llama_on_a_node());
  desk.window.show_view("timeline");
  QApplication::setActiveWindow(&desk.window);
  TimelinePlot* plot = timeline(desk)->plot();
  EXPECT_EQ(desk.window.focusWidget(), plot);
  const auto before = plot->visible();
  EXPECT_NEAR(before.from, 0, 1e-12) << "times count from the step's start";
  QTest::keyClick(desk.window.focusWidget(), Qt::Key_W);
  EXPECT_LT(plot->visible().length(), before.length());
  for (const double length : {1.0, 1e-2, 1e-4, 1e-6, 1e-8}) {
    const double from = 0.3, step = tick_step(length, 8, Unit::seconds);
    QStringList texts;
    for (const double at : ticks(from, from + length, step)) {
      texts << time_tick_text(at, step, from + length);
    }
    EXPECT_GE(texts.size(), 2) << length;
    EXPECT_EQ(QSet<QString>(texts.begin(), texts.end()).size(), texts.size())
        << texts.join(", ").toStdString();
  }
}

TEST(TimelineJourney, TotalsAddUpToTheRange) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2"}));
  desk.window.show_view("timeline");
  TimelinePage* page = timeline(desk);
  const StrategyStudy& strategy = desk.session.study()->strategies[0];
  const auto sum = [](const Table& table) {
    double total = 0;
    for (const auto& row : table.rows) total += std::get<double>(row[0]);
    return total;
  };
  // Of the lanes, as far as they are inside: whatever it is added up by.
  const TimelinePlot::Range range{0.1, 0.2};
  double busy = 0;
  for (const Lane& lane : page->plot()->data().lanes) {
    for (const Span& span : lane.spans) {
      if (lane.is_summary) continue;
      busy += std::max(0.0, std::min(span.end, range.to) - std::max(span.start, range.from));
    }
  }
  const auto names = op_names(*desk.session.study(), strategy);
  for (const TotalsBy by :
       {TotalsBy::operation, TotalsBy::layer, TotalsBy::both, TotalsBy::phase}) {
    EXPECT_NEAR(sum(range_totals(strategy, *names, range, by)), busy, 1e-9);
  }
  EXPECT_GT(sum(page->totals()->table()), 0.5) << "of the whole step, which takes 0.7 s";
  page->plot()->zoom_to(range);
  EXPECT_NEAR(sum(page->totals()->table()), busy, 1e-9) << "the table follows what is shown";
  for (const QLabel* label : page->findChildren<QLabel*>()) {
    if (!label->text().startsWith("Totals of")) continue;
    EXPECT_GE(label->width(), label->sizeHint().width()) << "cut at 1280 x 800";
  }
}

TEST(TimelineJourney, ASearchCountsAndEscapeLeavesIt) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2"}));
  desk.window.show_view("timeline");
  QApplication::setActiveWindow(&desk.window);
  TimelinePage* page = timeline(desk);
  QTest::keyClick(page->plot(), Qt::Key_Slash);
  EXPECT_EQ(desk.window.focusWidget(), page->search());
  QTest::keyClicks(page->search(), "qkv, weight gradient, block 3");
  const int matches = page->found().toInt();
  EXPECT_GT(matches, 5) << "block 3 and 30 to 32, in every recorded step";
  QTest::keyClick(page->search(), Qt::Key_Return);
  EXPECT_EQ(page->found(), QString("1 of %1").arg(matches));
  QTest::keyClick(page->search(), Qt::Key_Return);
  EXPECT_EQ(page->found(), QString("2 of %1").arg(matches));
  QTest::keyClick(page->search(), Qt::Key_Escape);
  EXPECT_EQ(desk.window.focusWidget(), page->plot());
  QTest::keyClick(page->plot(), Qt::Key_0);
  EXPECT_EQ(page->found(), QString("2 of %1").arg(matches)) << "a 0 is no text now";
}

TEST(TimelineJourney, TwoStrategiesShareOneAxis) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2", "zero-3-recompute"}));
  desk.window.show_view("timeline");
  TimelinePage* page = timeline(desk);
  const std::size_t alone = page->plot()->data().lanes.size();
  page->show_strategies("zero-2", "zero-3-recompute");
  const TimelineData& data = page->plot()->data();
  ASSERT_GT(data.lanes.size(), alone);
  EXPECT_EQ(data.memory.size(), 2u);
  std::map<int, double> ends;
  for (const Lane& lane : data.lanes) {
    EXPECT_TRUE(lane.name.startsWith(lane.source == 0 ? "zero-2: " : "zero-3-recompute: "));
    ends[lane.source] = std::max(ends[lane.source], lane.spans.back().end);
  }
  double longest = 0;
  for (int i = 0; i < 2; ++i) {
    const auto step = steady_step(desk.session.study()->strategies[static_cast<std::size_t>(i)]);
    EXPECT_LE(ends[i], step.length()) << "both from the start of their step";
    EXPECT_GT(ends[i], 0.97 * step.length()) << "then the host alone works";
    longest = std::max(longest, step.length());
  }
  EXPECT_DOUBLE_EQ(page->plot()->visible().to, longest);
}

}  // namespace
}  // namespace zl::gui
