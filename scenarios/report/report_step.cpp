#include "scenarios/report/report_step.h"

#include <algorithm>
#include <array>

#include "core/base/stream.h"
#include "scenarios/run/explain_tables.h"
#include "simulator/pipeline_work.h"

namespace zl {
namespace {

constexpr double kPicosecond = 1e-12;

double seconds(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * kPicosecond; }

// Of one stage; times count from `begin`, and what goes on after `end` is cut.
ChartLane stage_lane(const StageRun& run, std::int64_t begin, std::int64_t end) {
  ChartLane lane{name_of(run), {}};
  for (const sim::WorkSpan& work : sim::work_spans(run.recording->trace, run.timeline->events)) {
    const std::int64_t from = std::max(work.time.start, begin);
    const std::int64_t to = std::min(work.time.end, end);
    if (from >= to) continue;
    lane.spans.push_back({seconds(from - begin), seconds(to - begin),
                          static_cast<std::size_t>(work.kind), sim::number_of(work)});
  }
  return lane;
}

}  // namespace

ReportStep last_step(const Scenario& scenario, const Replay& replay) {
  constexpr std::size_t kLongest = 8;
  const sim::Timeline& timeline = replay.timeline();
  const std::int64_t duration =
      timeline.steps.empty() ? timeline.total : timeline.steps.back().duration;
  const std::int64_t begin = timeline.total - duration;
  std::array<ChartLane, kStreams> lanes;
  std::size_t index = 0;
  for (const TraceEvent& event : replay.recording.trace.events()) {
    const sim::EventTime& time = timeline.events[index++];
    const std::int64_t from = std::max(time.start, begin);
    if (!takes_time(event) || from >= time.end) continue;
    lanes[event.stream].spans.push_back({seconds(from - begin), seconds(time.end - begin),
                                         static_cast<std::size_t>(event.scope.phase)});
  }
  ReportStep step;
  step.strategy = replay.recording.strategy.name;
  step.seconds = seconds(duration);
  if (replay.recording.strategy.pipeline.ranks > 1) {
    for (const StageRun& run : stage_runs(replay.recording, replay.timelines)) {
      step.lanes.push_back(stage_lane(run, begin, timeline.total));
    }
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (lanes[i].spans.empty()) continue;
    lanes[i].name = name_of(static_cast<StreamId>(i));
    step.lanes.push_back(std::move(lanes[i]));
  }
  const Explanation why = explain(scenario, replay.recording, replay.result, timeline);
  step.longest = step_table(why);
  if (step.longest.rows.size() > kLongest) step.longest.rows.resize(kLongest);
  step.levers = lever_table(why);
  return step;
}

}  // namespace zl
