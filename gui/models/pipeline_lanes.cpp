#include "gui/models/pipeline_lanes.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "core/pipeline/pipeline.h"
#include "gui/units.h"
#include "simulator/pipeline_work.h"

namespace zl::gui {
namespace {

QString kind_text(const sim::WorkSpan& work) {
  const QString kind = QString::fromUtf8(name_of(work.kind)).replace('_', ' ');
  if (work.micro < 0) return kind;
  return QObject::tr("%1 of micro-batch %2").arg(kind).arg(work.micro);
}

// Which of the pipeline's stages a chunk of a rank is.
int stage_of(const StrategyStudy& strategy, int rank, int chunk) {
  const PipelineConfig& config = strategy.recording->strategy.pipeline;
  Pipeline pipeline{.kind = config.schedule, .shape = {}, .work = {}};
  pipeline.shape.ranks = static_cast<int>(config.ranks);
  pipeline.shape.chunks = static_cast<int>(config.virtual_stages);
  return pipeline.stage_of(rank, chunk);
}

QString where_text(const StrategyStudy& strategy, int rank, const sim::WorkSpan& work) {
  if (strategy.recording->strategy.pipeline.virtual_stages == 1 || work.micro < 0) return {};
  return QObject::tr(", part %1 of the model").arg(stage_of(strategy, rank, work.chunk));
}

using Texts = std::unordered_map<std::int32_t, QString>;

Lane lane_of(const StrategyStudy& strategy, const StageRun& run, double zero) {
  Lane lane{.name = QString::fromStdString(name_of(run)), .spans = {}};
  lane.is_summary = true;
  lane.stage = run.stage;
  const auto names = std::make_shared<Texts>(), numbers = std::make_shared<Texts>();
  for (const sim::WorkSpan& work : sim::work_spans(run.recording->trace, run.timeline->events)) {
    lane.spans.push_back({to_seconds(work.time.start) - zero, to_seconds(work.time.end) - zero,
                          work.event, static_cast<std::uint8_t>(work.kind)});
    names->emplace(work.event, kind_text(work) + where_text(strategy, run.stage, work));
    numbers->emplace(work.event, QString::fromStdString(sim::number_of(work)));
  }
  lane.describe = [names](std::int32_t event) { return names->at(event); };
  lane.number = [numbers](std::int32_t event) { return numbers->at(event); };
  return lane;
}

}  // namespace

void add_stage_lanes(const StrategyStudy& strategy, double zero, TimelineData& data) {
  const std::vector<StageRun> runs = strategy.stages();
  const std::vector<sim::RankTrace> traces = rank_traces(*strategy.recording);
  std::vector<std::size_t> lane_of_trace(traces.size());
  for (const StageRun& run : runs) {
    const auto own = std::ranges::find(traces, &run.recording->trace, &sim::RankTrace::trace);
    lane_of_trace[static_cast<std::size_t>(own - traces.begin())] = data.lanes.size();
    data.lanes.push_back(lane_of(strategy, run, zero));
  }
  for (const sim::Passage& passage : sim::passages(traces, *strategy.timelines)) {
    data.arrows.push_back({lane_of_trace[passage.from], lane_of_trace[passage.to],
                           to_seconds(passage.time.start) - zero,
                           to_seconds(passage.time.end) - zero});
  }
}

Table work_card(const StrategyStudy& strategy, double zero, int stage, std::int32_t event) {
  Table card;
  card.columns = {{"property", Align::left}, {"value", Align::left}};
  const StageRun run = strategy.stages().at(static_cast<std::size_t>(stage));
  const std::vector<sim::WorkSpan> all =
      sim::work_spans(run.recording->trace, run.timeline->events);
  const auto work = std::ranges::find(all, event, &sim::WorkSpan::event);
  if (work == all.end()) return card;
  const auto row = [&card](const char* name, const QString& value) {
    card.rows.push_back({std::string(name), value.toStdString()});
  };
  row("what", kind_text(*work) + where_text(strategy, stage, *work));
  row("stage", QString::fromStdString(name_of(run)));
  row("runs for", seconds_text(to_seconds(work->time.end - work->time.start)));
  row("starts in the step", seconds_text(to_seconds(work->time.start) - zero));
  const std::int64_t before = work == all.begin() ? work->time.start : (work - 1)->time.end;
  const std::int64_t idle = std::max<std::int64_t>(0, work->time.start - before);
  row("stage idle before", seconds_text(to_seconds(idle)));
  return card;
}

}  // namespace zl::gui
