// The frame budget: 400,000 spans under 16 ms, a live edit to painted views under 100 ms.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QPainter>
#include <QTemporaryDir>

#include "gui/main_window.h"
#include "gui/plot/line_plot.h"
#include "gui/plot/parallel_plot.h"
#include "gui/plot/timeline_plot.h"
#include "gui/session.h"
#include "gui/theme.h"

namespace zl::gui {
namespace {

TimelineData many_spans(int count) {
  TimelineData data;
  data.categories = {"forward", "backward", "recompute", "optimizer"};
  data.describe = [](std::int32_t event) { return QString("operation %1").arg(event); };
  data.lanes.resize(2);
  for (auto& lane : data.lanes) {
    for (int i = 0; i < count / 2; ++i) {
      const double start = i * 1e-5;
      lane.spans.push_back({start, start + 8e-6, i, static_cast<std::uint8_t>(i / 97 % 4)});
    }
  }
  data.memory.emplace_back();
  for (int i = 0; i < count; ++i) {
    data.memory.front().x.push_back(i * 5e-6);
    data.memory.front().y.push_back(1e9 * (1 + i % 1000));
  }
  return data;
}

void paint(benchmark::State& state, Plot& plot) {
  plot.resize(1600, 500);
  QImage image(1600, 500, QImage::Format_ARGB32_Premultiplied);
  for (auto _ : state) {
    QPainter painter(&image);
    plot.render_into(painter, QRectF(0, 0, 1600, 500));
  }
  int painted = 0;
  for (int x = 0; x < image.width(); ++x) {
    painted += image.pixelColor(x, 80) != plot.palette().base().color() ? 1 : 0;
  }
  if (painted < image.width() / 2) state.SkipWithError("hardly anything was painted");
}

void BM_TimelineRepaint(benchmark::State& state) {
  TimelinePlot plot("Timeline");
  plot.set_data(many_spans(static_cast<int>(state.range(0))));
  paint(state, plot);
}
BENCHMARK(BM_TimelineRepaint)->Arg(400'000)->Unit(benchmark::kMillisecond);

void BM_TimelineRepaintZoomed(benchmark::State& state) {
  TimelinePlot plot("Timeline");
  plot.set_data(many_spans(400'000));
  plot.zoom_to({1.0, 1.0 + 1e-5 * static_cast<double>(state.range(0))});
  paint(state, plot);
}
BENCHMARK(BM_TimelineRepaintZoomed)->Arg(20)->Arg(2000)->Unit(benchmark::kMillisecond);

void BM_MemoryLines(benchmark::State& state) {
  LineData data;
  data.y_unit = Unit::bytes;
  data.steps = true;
  for (int curve = 0; curve < 4; ++curve) {
    Curve next{QString::number(curve), {}, {}};
    for (int i = 0; i < 100'000; ++i) {
      next.x.push_back(i);
      next.y.push_back(1e9 * (curve + 1) + 1e6 * (i % 500));
    }
    data.curves.push_back(std::move(next));
  }
  LinePlot plot("Memory");
  plot.set_data(std::move(data));
  plot.resize(1600, 500);
  QImage image(1600, 500, QImage::Format_ARGB32_Premultiplied);
  for (auto _ : state) {
    QPainter painter(&image);
    plot.render_into(painter, QRectF(0, 0, 1600, 500));
  }
}
BENCHMARK(BM_MemoryLines)->Unit(benchmark::kMillisecond);

// On screen the lines come from a cache; a brush draws them anew.
void BM_ParallelRuns(benchmark::State& state) {
  ParallelData chart;
  for (int axis = 0; axis < 8; ++axis) chart.axes.push_back({QString::number(axis)});
  for (int run = 0; run < 500; ++run) {
    ParallelLine line{QString("run %1").arg(run), {}};
    for (int axis = 0; axis < 8; ++axis) line.values.push_back((run * (axis + 3)) % 101);
    chart.lines.push_back(std::move(line));
  }
  ParallelPlot plot("Runs");
  plot.set_data(std::move(chart));
  plot.resize(1600, 500);
  QImage image(1600, 500, QImage::Format_ARGB32_Premultiplied);
  const bool brushes = state.range(0) == 1;
  double low = 0;
  for (auto _ : state) {
    if (brushes) plot.brush(0, ParallelPlot::Range(low = low < 50 ? low + 1 : 0, 100));
    plot.render(&image);
  }
}
BENCHMARK(BM_ParallelRuns)->ArgName("brush")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

struct EditedScenario {
  const char *model, *cluster, *other_cluster;
};
constexpr EditedScenario kEdited[] = {{"gpt3-175b", "1024xh100", "1024xb200"},
                                      {"llama3-8b", "8xh100", "8xb200"}};

// An edit of the seed (records anew) or of the cluster (prices again), until the window is painted
// with the new numbers.
void BM_LiveEdit(benchmark::State& state) {
  const EditedScenario& edited = kEdited[state.range(1)];
  const QTemporaryDir folder;
  Session session;
  MainWindow window(session, {folder.filePath("runs.db").toStdString(), {}});
  session.open(Document::parse(
                   R"({"schema": 1, "model": "gpt2-tiny", "run": {"precision": "bf16"}})", "bench")
                   .with("model", edited.model)
                   .with("cluster", edited.cluster));
  session.wait();
  window.show();
  window.grab();
  const bool records = state.range(0) == 1;
  int turn = 0;
  for (auto _ : state) {
    ++turn;
    session.edit_key(records ? "run.seed" : "cluster", records    ? QString::number(turn)
                                                       : turn % 2 ? edited.other_cluster
                                                                  : edited.cluster);
    session.wait();
    window.grab();
  }
}
BENCHMARK(BM_LiveEdit)
    ->ArgNames({"records", "llama"})
    ->ArgsProduct({{1, 0}, {0, 1}})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zl::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  zl::gui::apply_appearance(zl::gui::Appearance::light);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
