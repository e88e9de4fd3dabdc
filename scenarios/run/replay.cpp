#include "scenarios/run/replay.h"

#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/software_bytes.h"
#include "simulator/memory_curve.h"
#include "simulator/pipeline_work.h"

namespace zl {
namespace {

constexpr std::int64_t kPicoseconds = 1000;  // per nanosecond

}  // namespace

Replay replay(const Scenario& scenario, const ImportedStrategy& imported,
              const std::vector<std::int64_t>& overflows) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  Replay out;
  DeviceProperties device = simulated_device(scenario, cluster);
  const Strategy strategy = resolve_recompute(scenario, imported.strategy, device);
  device.memory = device.host_memory = 0;
  ProgramOptions options = program_options(scenario);
  options.host_memory = 0;
  options.overflows = overflows;
  out.recording = record_run(scenario, strategy, device, options);
  out.result = price_run(scenario, out.recording, cluster, &out.timelines);
  out.result.software_held = held_by_software(scenario, strategy);
  return out;
}

Trace timed_trace(const Trace& trace, const std::vector<sim::EventTime>& times) {
  std::vector<sim::EventTime> all = times;
  for (std::size_t space = 0; space < kMemorySpaces; ++space) {
    for (const sim::MemoryPoint& point :
         sim::memory_over_time(trace, times, static_cast<MemorySpace>(space))) {
      all[point.event] = {point.time, point.time};
    }
  }
  Trace timed;
  std::size_t index = 0;
  auto round = trace.rounds().begin();
  for (TraceEvent event : trace.events()) {
    if (round != trace.rounds().end() && round->first == index) timed.begin_round();
    const sim::EventTime& time = all[index++];
    const Timing measured = event.timing;
    event.timing = {time.start / kPicoseconds, time.end / kPicoseconds};
    if (measured.met_ns != 0) {
      event.timing.met_ns = event.timing.start_ns + measured.met_ns - measured.start_ns;
    }
    timed.append(event);
    while (round != trace.rounds().end() && round->last <= index) {
      if (round->first < round->last) timed.repeat_round(round->count - 1);
      ++round;
    }
  }
  return timed;
}

namespace {

std::vector<StagePass> passes_of(const StageRun& run) {
  std::vector<StagePass> passes;
  for (const sim::WorkSpan& work : sim::work_spans(run.recording->trace, run.timeline->events)) {
    if (work.micro < 0) continue;
    passes.push_back({work.kind,
                      work.step,
                      work.micro,
                      work.chunk,
                      {work.time.start / kPicoseconds, work.time.end / kPicoseconds}});
  }
  return passes;
}

// Into traces in the order of `runs`: what goes along the pipeline from each to the others.
void add_messages(const Recording& recording, std::span<const sim::Timeline> timelines,
                  const std::vector<StageRun>& runs, std::vector<TimedTrace>& traces) {
  const std::vector<sim::RankTrace> all = rank_traces(recording);
  const auto place = [&](std::size_t trace) {
    const auto is_of = [&](const StageRun& run) {
      return &run.recording->trace == all[trace].trace;
    };
    return static_cast<int>(std::ranges::find_if(runs, is_of) - runs.begin());
  };
  for (const sim::Passage& passage : sim::passages(all, timelines)) {
    const int from = place(passage.from), to = place(passage.to);
    traces[static_cast<std::size_t>(from)].sent.push_back(
        {to - from, passage.sent, passage.received});
  }
}

}  // namespace

std::vector<TimedTrace> timed_traces(const Recording& recording,
                                     std::span<const sim::Timeline> timelines,
                                     const std::string& name) {
  const bool is_pipeline = recording.strategy.pipeline.ranks > 1;
  std::vector<TimedTrace> traces;
  const std::vector<StageRun> runs = stage_runs(recording, timelines);
  for (const StageRun& run : runs) {
    traces.push_back({is_pipeline ? name + ", " + name_of(run) : name,
                      timed_trace(run.recording->trace, run.timeline->events),
                      is_pipeline ? passes_of(run) : std::vector<StagePass>{}});
  }
  if (is_pipeline) add_messages(recording, timelines, runs, traces);
  return traces;
}

}  // namespace zl
