// The frame budget: 400,000 spans under 16 ms; a live edit to painted views under 16 ms for Llama 3
// 8B and 50 ms for GPT-3 175B, 100 ms where it is recorded anew.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QPainter>
#include <QTemporaryDir>
#include <atomic>
#include <memory>
#include <string>

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

Document edited_document(const EditedScenario& edited) {
  return Document::parse(R"({"schema": 1, "model": "gpt2-tiny", "run": {"precision": "bf16"}})",
                         "bench")
      .with("model", edited.model)
      .with("cluster", edited.cluster);
}

// A sequence length that was not seen yet (records anew), links that were not (prices again),
// another seed (neither).
enum class Edit : std::uint8_t { records, prices, neither };

struct KeyValue {
  const char* key;
  std::string value;
};

KeyValue edit_of(Edit edit, int turn) {
  switch (edit) {
    case Edit::records:
      return {"run.sequence_length", std::to_string(2048 - turn % 1024)};
    case Edit::prices:
      return {"run.link_bandwidth", std::to_string(100 + turn) + "Gbit"};
    case Edit::neither:
      return {"run.seed", std::to_string(turn)};
  }
  return {};
}

// Without the window.
void BM_Evaluation(benchmark::State& state) {
  const Document document = edited_document(kEdited[state.range(1)]);
  const std::atomic<bool> go_on{false};
  Evaluator evaluator;
  int turn = 0;
  std::shared_ptr<const Study> study = evaluator.evaluate(document, go_on);
  for (auto _ : state) {
    const auto [key, value] = edit_of(static_cast<Edit>(state.range(0)), ++turn);
    study = evaluator.evaluate(document.with(key, value), go_on);
  }
  state.counters["recorded"] = study->recorded;
  state.counters["priced"] = study->priced;
}

// Until everything that changed is painted.
void BM_LiveEdit(benchmark::State& state) {
  const QTemporaryDir folder;
  Session session;
  MainWindow window(session, {folder.filePath("runs.db").toStdString(), {}});
  session.open(edited_document(kEdited[state.range(1)]));
  session.wait();
  window.show();
  window.grab();
  int turn = 0;
  for (auto _ : state) {
    const auto [key, value] = edit_of(static_cast<Edit>(state.range(0)), ++turn);
    session.edit_key(key, QString::fromStdString(value));
    session.wait();
    QApplication::processEvents();
  }
}
#define ZL_EDITS(name)                   \
  BENCHMARK(name)                        \
      ->ArgNames({"edit", "llama"})      \
      ->ArgsProduct({{0, 1, 2}, {0, 1}}) \
      ->MeasureProcessCPUTime()          \
      ->UseRealTime()                    \
      ->Unit(benchmark::kMillisecond)
ZL_EDITS(BM_Evaluation);
ZL_EDITS(BM_LiveEdit);

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
