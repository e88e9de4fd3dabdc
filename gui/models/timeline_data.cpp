#include "gui/models/timeline_data.h"

#include <algorithm>
#include <array>

#include "core/base/stream.h"
#include "gui/models/meaning.h"
#include "gui/models/pipeline_lanes.h"
#include "gui/units.h"

namespace zl::gui {
namespace {

const Scope& scope_of(const Trace& trace, std::int32_t event) {
  return trace.events()[static_cast<std::size_t>(event)].scope;
}

// Another span of the compute stream: the last one of the lane goes on when it is of the same.
template <class Same>
void extend(Lane& lane, const Span& span, Same same) {
  if (!lane.spans.empty() && same(lane.spans.back().event)) {
    lane.spans.back().end = span.end;
  } else {
    lane.spans.push_back(span);
  }
}

}  // namespace

StageRun run_of(const StrategyStudy& strategy, int stage) {
  const std::vector<StageRun> runs = strategy.stages();
  if (stage != kOwnStage) return runs.at(static_cast<std::size_t>(stage));
  return *std::ranges::find(runs, static_cast<const ClassRecording*>(strategy.recording.get()),
                            &StageRun::recording);
}

std::vector<sim::MemoryPoint> memory_of(const StrategyStudy& strategy, int stage) {
  if (stage == kOwnStage) return strategy.memory();
  const StageRun run = run_of(strategy, stage);
  return sim::memory_over_time(run.recording->trace, run.timeline->events, MemorySpace::device);
}

std::shared_ptr<const OpNames> op_names(const Study& study, const StrategyStudy& strategy,
                                        int stage) {
  const std::int64_t rows =
      strategy.imported.strategy.micro_batch * study.scenario.run.sequence_length;
  const StageRun run = run_of(strategy, stage);
  return std::make_shared<const OpNames>(run.recording->trace, study.scenario.model, rows);
}

namespace {

QString lane_prefix(const Study& study, const StrategyStudy& strategy, int stage) {
  if (strategy.has_pipeline()) {
    const StageRun run = run_of(strategy, stage);
    return QString::fromStdString(name_of(run)) + ": ";
  }
  return study.scenario.run.ranks > 1
             ? QObject::tr("ranks 0-%1: ").arg(study.scenario.run.ranks - 1)
             : QObject::tr("rank 0: ");
}

// Phases, layers, and the streams of one rank.
void add_operation_lanes(const std::shared_ptr<const Trace>& trace, const sim::Timeline& timeline,
                         double zero, const QString& prefix,
                         const std::shared_ptr<const OpNames>& names, TimelineData& data) {
  Lane phases{.name = QObject::tr("phases"), .spans = {}},
      layers{.name = QObject::tr("layers"), .spans = {}};
  phases.is_summary = layers.is_summary = true;
  std::array<Lane, kStreams> lanes;
  std::int32_t index = -1;
  for (const TraceEvent& event : trace->events()) {
    ++index;
    if (!takes_time(event)) continue;
    const sim::EventTime& time = timeline.events[static_cast<std::size_t>(index)];
    const Span span{to_seconds(time.start) - zero, to_seconds(time.end) - zero, index,
                    static_cast<std::uint8_t>(event.scope.phase)};
    lanes[event.stream].spans.push_back(span);
    if (event.stream != static_cast<std::uint8_t>(StreamId::compute)) continue;
    const auto same_phase = [&](std::int32_t before) {
      const Scope &a = scope_of(*trace, before), &b = event.scope;
      return a.phase == b.phase && a.step == b.step && a.micro == b.micro && a.chunk == b.chunk;
    };
    extend(phases, span, same_phase);
    extend(layers, span, [&](std::int32_t before) {
      return same_phase(before) && scope_of(*trace, before).unit == event.scope.unit;
    });
  }
  phases.describe = [trace](std::int32_t event) {
    return QString(name_of(scope_of(*trace, event).phase));
  };
  layers.describe = [trace, names](std::int32_t event) {
    const QString& layer = names->layer(event);
    return layer.isEmpty() ? QString(name_of(scope_of(*trace, event).phase)) : layer;
  };
  data.lanes.push_back(std::move(phases));
  data.lanes.push_back(std::move(layers));
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (lanes[i].spans.empty()) continue;
    lanes[i].name = prefix + QString(name_of(static_cast<StreamId>(i)));
    lanes[i].describe = [names](std::int32_t event) { return names->whole(event); };
    data.lanes.push_back(std::move(lanes[i]));
  }
}

}  // namespace

TimelineData timeline_data(const Study& study, const StrategyStudy& strategy,
                           std::shared_ptr<const OpNames> names, TimelineChoice choice) {
  TimelineData data;
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    data.categories.push_back(QString(name_of(phase)).replace('_', ' '));
    data.styles.push_back(style_of(phase));
    data.explained.push_back(explained(phase));
  }
  const TimelinePlot::Range step = steady_step(strategy);
  const double zero = step.from;
  data.end = step.length();
  if (strategy.has_pipeline()) add_stage_lanes(strategy, zero, data);
  if (choice.operations || data.lanes.empty()) {
    const std::size_t first = data.lanes.size();
    const StageRun run = run_of(strategy, choice.stage);
    const std::shared_ptr<const Trace> trace(strategy.recording, &run.recording->trace);
    add_operation_lanes(trace, *run.timeline, zero, lane_prefix(study, strategy, choice.stage),
                        names, data);
    for (std::size_t i = first; i < data.lanes.size(); ++i) data.lanes[i].stage = choice.stage;
  }
  MemoryTrack memory;
  memory.name = QObject::tr("memory");
  for (const sim::MemoryPoint& point : memory_of(strategy, choice.stage)) {
    memory.x.push_back(to_seconds(point.time) - zero);
    memory.y.push_back(static_cast<double>(point.total()));
  }
  data.memory.push_back(std::move(memory));
  if (study.budget > 0) data.limit = static_cast<double>(study.budget);
  return data;
}

TimelineData side_by_side(TimelineData first, const QString& first_name, TimelineData second,
                          const QString& second_name) {
  const auto short_lane = [](const QString& lane) { return lane.section(": ", -1); };
  for (Lane& lane : first.lanes) lane.name = first_name + ": " + short_lane(lane.name);
  first.memory.front().name = first_name + QObject::tr(": memory");
  first.end = std::max(first.end, second.end);
  const std::size_t lanes = first.lanes.size();
  for (Arrow arrow : second.arrows) {
    first.arrows.push_back({lanes + arrow.from, lanes + arrow.to, arrow.start, arrow.end});
  }
  for (Lane& lane : second.lanes) {
    lane.name = second_name + ": " + short_lane(lane.name);
    lane.source = 1;
    first.lanes.push_back(std::move(lane));
  }
  second.memory.front().name = second_name + QObject::tr(": memory");
  first.memory.push_back(std::move(second.memory.front()));
  return first;
}

TimelinePlot::Range steady_step(const StrategyStudy& strategy) {
  const double end = to_seconds(strategy.timeline().total);
  if (strategy.timeline().steps.empty()) return {0, end};
  return {end - to_seconds(strategy.timeline().steps.back().duration), end};
}

}  // namespace zl::gui
