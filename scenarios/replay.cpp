#include "scenarios/replay.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/device/thread_group.h"
#include "scenarios/runner.h"
#include "scenarios/simulate.h"

namespace zl {
namespace {

constexpr double kPicosecond = 1e-12;

bool takes_time(const TraceEvent& event) {
  return event.type == EventType::op || event.type == EventType::collective ||
         event.type == EventType::copy || event.type == EventType::transfer;
}

Replay simulate(const Scenario& scenario, const ImportedStrategy& imported) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  DeviceProperties device = sim::device_properties(cluster);
  device.memory = memory_budget(scenario, cluster);
  const Strategy strategy = resolve_recompute(scenario, imported.strategy, device);
  device.memory = 0;
  ProgramOptions options = program_options(scenario);
  options.host_memory = 0;
  const Recording recording = record_run(scenario, strategy, device, options);
  sim::Timeline timeline;
  price_run(scenario, recording, cluster, &timeline);
  const std::int64_t duration =
      timeline.steps.empty() ? timeline.total : timeline.steps.back().duration;
  Replay out;
  out.needed = recording.books.peak_device.total();
  out.step.seconds = static_cast<double>(duration) * kPicosecond;
  out.step.lanes =
      lanes_between(recording.trace, timeline.events, timeline.total - duration, timeline.total);
  return out;
}

}  // namespace

Replay replay(const Scenario& scenario) {
  Replay out;
  const ImportedStrategy& imported = scenario.strategies.at(0);
  try {
    out = simulate(scenario, imported);
  } catch (const std::exception& error) {
    out.step.problem = error.what();
  }
  out.step.strategy = imported.strategy.name;
  return out;
}

std::vector<ChartLane> lanes_between(const Trace& trace, const std::vector<sim::EventTime>& times,
                                     std::int64_t begin, std::int64_t end) {
  std::array<ChartLane, kStreams> lanes;
  std::size_t index = 0;
  for (const TraceEvent& event : trace.events()) {
    const sim::EventTime& time = times[index++];
    const std::int64_t from = std::max(time.start, begin), to = std::min(time.end, end);
    if (!takes_time(event) || from >= to) continue;
    lanes[event.stream].spans.push_back({static_cast<double>(from - begin) * kPicosecond,
                                         static_cast<double>(to - begin) * kPicosecond,
                                         static_cast<std::size_t>(event.scope.phase)});
  }
  std::vector<ChartLane> used;
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (lanes[i].spans.empty()) continue;
    lanes[i].name = name_of(static_cast<StreamId>(i));
    used.push_back(std::move(lanes[i]));
  }
  return used;
}

}  // namespace zl
