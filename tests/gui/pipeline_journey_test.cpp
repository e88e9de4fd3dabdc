// A pipeline as people look at it: its stages as the textbook draws them, what each holds, where
// the step's time goes, and the mesh as fields of a form.
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <numeric>

#include "core/base/collective_kind.h"
#include "gui/models/chart_data.h"
#include "gui/models/pipeline_lanes.h"
#include "gui/models/strategy_text.h"
#include "gui/models/table_model.h"
#include "gui/plot/bar_plot.h"
#include "gui/theme.h"
#include "gui/views/chart_page.h"
#include "gui/views/mesh_panel.h"
#include "gui/views/trace_views.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

constexpr std::size_t kStages = 4, kMicroBatches = 8;

Document schedules() { return Document::open("pipeline-schedules"); }

TimelinePage* timeline_of(test::Desk& desk) {
  return qobject_cast<TimelinePage*>(desk.window.view("timeline"));
}

// "F0 F1 F2 F3 B0 ..." of what a lane shows of the steady step.
QStringList steps_of(const Lane& lane) {
  QStringList steps;
  for (const Span& span : lane.spans) {
    const QString number = lane.number(span.event);
    if (span.end <= 0 || number.isEmpty()) continue;
    const auto kind = static_cast<Phase>(span.category);
    steps << (kind == Phase::forward ? "F" : kind == Phase::backward ? "B" : "W") + number;
  }
  return steps;
}

TEST(PipelineJourney, TheTimelineIsTheTextbooksPicture) {
  test::Desk desk(schedules());
  desk.window.show_view("timeline");
  TimelinePage* page = timeline_of(desk);
  page->show_strategies("pp4-1f1b", "pp4-zb-h1");
  const TimelineData& data = page->plot()->data();
  ASSERT_EQ(data.lanes.size(), 2 * kStages) << "stages alone at first";
  EXPECT_TRUE(data.lanes[0].name.startsWith("pp4-1f1b: stage 0"));
  // Of 1F1B: the first stage runs three forwards ahead, the last none.
  EXPECT_EQ(steps_of(data.lanes[0]).mid(0, 8).join(" "), "F0 F1 F2 F3 B0 F4 B1 F5");
  EXPECT_EQ(steps_of(data.lanes[3]).mid(0, 6).join(" "), "F0 B0 F1 B1 F2 B2");
  // ZB-H1 leaves weight gradients for later.
  const QStringList zero_bubble = steps_of(data.lanes[kStages]);
  EXPECT_EQ(zero_bubble.filter("W").size(), static_cast<qsizetype>(kMicroBatches));
  EXPECT_EQ(zero_bubble.back(), QString("W%1").arg(kMicroBatches - 1));
  // Arrows stay between the stages of one strategy, and arrive after they left.
  EXPECT_GE(data.arrows.size(), 2 * 2 * (kStages - 1) * kMicroBatches);
  for (const Arrow& arrow : data.arrows) {
    EXPECT_EQ(arrow.from / kStages, arrow.to / kStages);
    EXPECT_EQ(std::max(arrow.from, arrow.to) - std::min(arrow.from, arrow.to), 1U);
    EXPECT_LT(arrow.start, arrow.end);
  }
}

int distance(const QColor& a, const QColor& b) {
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) +
         std::abs(a.blue() - b.blue());
}

// Shares of a row of pixels that are nearest to each colour: hatches are of a darker one.
std::vector<double> shares_of(const QImage& image, const QRect& row,
                              const std::vector<QColor>& colors) {
  std::vector<double> shares(colors.size());
  for (int x = row.left(); x <= row.right(); ++x) {
    const QColor pixel = image.pixelColor(x, row.top() + 2);
    const auto nearest = std::ranges::min_element(
        colors, {}, [&](const QColor& color) { return distance(pixel, color); });
    shares[static_cast<std::size_t>(nearest - colors.begin())] += 1.0 / row.width();
  }
  return shares;
}

TEST(PipelineJourney, ForwardAndBackwardAreSeenAndTheBubbleIsEmpty) {
  test::Desk desk(schedules());
  desk.window.resize(1280, 800);
  desk.window.show_view("timeline");
  TimelinePage* page = timeline_of(desk);
  page->show_strategies("pp4-1f1b", "");
  page->plot()->resize(1000, 400);
  const QImage image = page->plot()->grab().toImage();
  const auto& lanes = page->plot()->data().lanes;
  const auto categories = page->plot()->data().styles;
  const QColor forward = series_color(categories[static_cast<std::size_t>(Phase::forward)]);
  const QColor backward = series_color(categories[static_cast<std::size_t>(Phase::backward)]);
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    const QRect row = page->plot()->row_area(stage).toRect();
    double busy[2] = {0, 0};
    for (const Span& span : lanes[stage].spans) {
      if (span.end <= 0) continue;
      const double share = (span.end - span.start) / page->plot()->visible().length();
      if (span.category == static_cast<std::uint8_t>(Phase::forward)) busy[0] += share;
      if (span.category == static_cast<std::uint8_t>(Phase::backward)) busy[1] += share;
    }
    const std::vector<double> shares =
        shares_of(image, row, {forward, backward, page->plot()->palette().base().color()});
    // Borders between boxes and the ends of arrows take some of the pixels.
    EXPECT_NEAR(shares[0], busy[0], 0.06) << stage;
    EXPECT_NEAR(shares[1], busy[1], 0.06) << stage;
    EXPECT_GT(shares[2], 0.15) << "what is idle is empty";
  }
}

TEST(PipelineJourney, AStageIsOpenedAndItsWorkSaysWhatItIs) {
  test::Desk desk(schedules());
  desk.window.show_view("timeline");
  TimelinePage* page = timeline_of(desk);
  page->show_strategies("pp4-zb-h1", "");
  page->plot()->select(1, 3);
  const Table card = page->card()->table();
  EXPECT_TRUE(std::get<std::string>(card.rows.at(1)[1]).starts_with("stage 1, ranks 2-3"));
  ASSERT_EQ(page->rows()->count(), static_cast<int>(kStages) + 1);
  page->rows()->setCurrentIndex(3);
  Q_EMIT page->rows()->activated(3);
  const auto& lanes = page->plot()->data().lanes;
  ASSERT_GT(lanes.size(), kStages + 2);
  EXPECT_TRUE(lanes.back().name.startsWith("stage 2, ranks 4-5: "));
  page->plot()->select(lanes.size() - 1, 0);
  EXPECT_GT(page->card()->table().rows.size(), 5U) << "an operation's cost";
}

TEST(PipelineJourney, EveryStageHasItsMemoryAndTheHighestIsNamed) {
  test::Desk desk(schedules());
  desk.session.select({"pp4-1f1b"});
  const StrategyStudy& strategy = *desk.session.study()->find("pp4-1f1b");
  const BarData bars = stage_memory_bars(*desk.session.study(), strategy);
  ASSERT_EQ(bars.rows.size(), kStages);
  EXPECT_TRUE(bars.caption.contains(QString("rank %1's").arg(strategy.result.rank)));
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto& values = bars.rows[i].values;
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0),
              static_cast<double>(strategy.result.stages[i].peak_device.total()));
  }
  auto* page = static_cast<ChartPage*>(desk.window.view("memory"));
  desk.window.show_view("memory");
  QCheckBox* stages = nullptr;
  for (QCheckBox* each : page->findChildren<QCheckBox*>()) {
    if (each->text() == "stages") stages = each;
  }
  ASSERT_NE(stages, nullptr);
  stages->click();
  EXPECT_EQ(qobject_cast<BarPlot*>(page->plot())->data().rows.size(), kStages);
  stages->click();
  EXPECT_EQ(qobject_cast<BarPlot*>(page->plot())->data().rows.size(), 4U) << "strategies again";
}

TEST(PipelineJourney, TheStepsBarsHaveTheBubbleAndWhatTheMeshSends) {
  test::Desk desk(schedules());
  const BarData bars = time_bars(desk.session.shown());
  const auto series = [&](const char* name) {
    return std::find(bars.series.begin(), bars.series.end(), name) - bars.series.begin();
  };
  const auto bubble = static_cast<std::size_t>(series("bubble"));
  EXPECT_LT(series("exposed pipeline communication"), std::ssize(bars.series));
  EXPECT_EQ(series("exposed tensor communication"), std::ssize(bars.series)) << "there is none";
  for (std::size_t i = 0; i < bars.rows.size(); ++i) {
    const RunResult& result = desk.session.study()->strategies[i].result;
    EXPECT_GT(bars.rows[i].values[bubble], 0);
    EXPECT_NEAR(std::accumulate(bars.rows[i].values.begin(), bars.rows[i].values.end(), 0.0),
                result.step_time.median, 1e-9);
  }
  EXPECT_LT(bars.rows[2].values[bubble], bars.rows[1].values[bubble]) << "ZB-H1 fills it";
}

TEST(PipelineJourney, TheMeshIsAFormThatMarksWhatCannotBe) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-1", "zero-3"}));
  desk.session.select({"zero-1"});
  MeshPanel& mesh = test::form(desk.window).mesh();
  EXPECT_EQ(mesh.strategy(), "zero-1");
  const auto type = [&](const char* key, const char* text) {
    auto* line = qobject_cast<QLineEdit*>(mesh.field(key));
    line->setText(text);
    Q_EMIT line->editingFinished();
    desk.session.wait();
  };
  type("tensor", "2");
  type("pipeline", "2");
  EXPECT_EQ(mesh.strategy(), "zero-1+tp2+pp2");
  const StrategyStudy* changed = desk.session.study()->find("zero-1+tp2+pp2");
  ASSERT_NE(changed, nullptr) << desk.session.error().toStdString();
  EXPECT_EQ(changed->recording->strategy.tensor.ranks, 2);
  EXPECT_EQ(changed->result.stages.size(), 2U);
  // 3 does not divide the ranks: the field says so, in the words of the command line.
  type("tensor", "3");
  EXPECT_TRUE(mesh.error_at("tensor").contains("does not divide 8 ranks"))
      << desk.session.error().toStdString();
  EXPECT_TRUE(mesh.field("tensor")->styleSheet().contains("border"));
  EXPECT_TRUE(mesh.error_at("pipeline").isEmpty());
  type("tensor", "many");
  EXPECT_TRUE(mesh.error_at("tensor").contains("not a whole number"));
  type("tensor", "");
  EXPECT_TRUE(mesh.error_at("tensor").isEmpty());
  EXPECT_EQ(mesh.strategy(), "zero-1+pp2");
  auto* schedule = qobject_cast<QComboBox*>(mesh.field("schedule"));
  schedule->setCurrentText("zb-v");
  Q_EMIT schedule->activated(schedule->currentIndex());
  desk.session.wait();
  EXPECT_FALSE(mesh.error_at("schedule").isEmpty()) << "a V has two stages a rank";
  type("virtual_stages", "2");
  EXPECT_TRUE(mesh.error_at("schedule").isEmpty()) << desk.session.error().toStdString();
  // Beside products, where a strategy has a tensor group.
  type("tensor", "2");
  auto* overlap = qobject_cast<QComboBox*>(mesh.field("tensor_overlap"));
  overlap->setCurrentText("true");
  Q_EMIT overlap->activated(overlap->currentIndex());
  desk.session.wait();
  EXPECT_EQ(mesh.strategy(), "zero-1+tp2+tp-overlap+pp2+v2+zb-v");
  ASSERT_NE(desk.session.study()->find(mesh.strategy().toStdString()), nullptr)
      << desk.session.error().toStdString();
  EXPECT_TRUE(
      desk.session.study()->find(mesh.strategy().toStdString())->imported.strategy.tensor.overlap);
  overlap->setCurrentIndex(0);
  Q_EMIT overlap->activated(0);
  type("tensor", "");
  // Taken back one by one, the strategy is the catalogue's again.
  type("virtual_stages", "");
  schedule->setCurrentIndex(0);
  Q_EMIT schedule->activated(0);
  type("pipeline", "");
  EXPECT_EQ(desk.session.document().strategies(), (std::vector<std::string>{"zero-1", "zero-3"}));
}

// Numbers of blocks of the stages outlive edits of the mesh, and are told in words.
TEST(PipelineJourney, StagesKeepTheirNumbersOfRecomputedBlocks) {
  const std::string strategy =
      R"({"zero_optimization":{"stage":1},"x-zerolab":{"name":"mine","recompute":"blocks:5,0",)"
      R"("parallel":{"pipeline":2}}})";
  test::Desk desk(
      test::llama_on_a_node().with("run.gradient_accumulation", "8").with_strategies({strategy}));
  desk.session.select({"mine"});
  MeshPanel& mesh = test::form(desk.window).mesh();
  const auto type = [&](const char* key, const char* text) {
    auto* line = qobject_cast<QLineEdit*>(mesh.field(key));
    line->setText(text);
    Q_EMIT line->editingFinished();
    desk.session.wait();
  };
  type("tensor", "2");
  const StrategyStudy* changed = desk.session.study()->find("mine+tp2");
  ASSERT_NE(changed, nullptr) << desk.session.error().toStdString();
  EXPECT_EQ(changed->recording->strategy.recompute.stage_blocks, (std::vector<std::int64_t>{5, 0}));
  EXPECT_TRUE(describe(*changed).contains("Recomputation: of the stages' first 5, 0 blocks"))
      << describe(*changed).toStdString();
  type("pipeline", "4");
  EXPECT_TRUE(desk.session.error().contains("blocks of 2 stages, there are 4; give 4 numbers"))
      << desk.session.error().toStdString();
  type("pipeline", "2");
  type("tensor", "");
  EXPECT_EQ(desk.session.document().strategies(), (std::vector<std::string>{strategy}));
}

TEST(PipelineJourney, TrafficIsToldByAxisAndLink) {
  test::Desk desk(schedules());
  const BarData chart = traffic_bars(*desk.session.study(), desk.session.shown(), false);
  EXPECT_NE(std::find(chart.series.begin(), chart.series.end(), "send (pipeline, nvlink4)"),
            chart.series.end());
}

}  // namespace
}  // namespace zl::gui
