#include "scenarios/run/explain.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "scenarios/files/clusters.h"
#include "scenarios/run/judge.h"
#include "scenarios/run/simulate.h"
#include "scenarios/run/strategy_bytes.h"
#include "simulator/cost/roofline.h"
#include "simulator/memory_curve.h"

namespace zl {
namespace {

std::string layer_kind(const TraceEvent& event, std::int64_t layers) {
  if (event.scope.unit < 0) return "";
  if (event.scope.unit == 0) return "embedding";
  return event.scope.unit > layers ? "head" : "blocks";
}

bool is_between_nodes(const TraceEvent& event, const sim::ClusterSpec& cluster) {
  return event.k * event.stride > cluster.node_devices;
}

}  // namespace

StepItem explain_event(const TraceEvent& event, const sim::ClusterSpec& cluster) {
  StepItem item;
  item.flops = event.flops;
  item.bytes = static_cast<double>(event.bytes_read + event.bytes_written);
  if (event.type == EventType::collective || event.type == EventType::message) {
    item.limit = is_between_nodes(event, cluster) ? cluster.inter.name : cluster.intra.name;
    if (event.type == EventType::collective) item.bytes = static_cast<double>(event.wire_bytes);
  } else if (event.type == EventType::copy) {
    item.limit = cluster.host.name;
    item.bytes = static_cast<double>(event.bytes_read);
  } else if (event.type == EventType::transfer) {
    item.limit = cluster.storage.name;
    item.bytes = static_cast<double>(event.bytes_read);
  } else if (event.stream == static_cast<std::uint8_t>(StreamId::host)) {
    item.limit = "host memory";
  } else {
    const double share = cluster.shared_cores > 0 ? 1.0 / cluster.devices : 1.0;
    const sim::OpCost cost = sim::op_cost(event, cluster.device, share);
    item.limit = name_of(cost.bound);
    item.bytes = cost.bytes;
    const double peak = cluster.device.rate(event.dtype).peak * share;
    if (cost.bound == sim::Bound::compute && peak > 0) item.least = event.flops / peak;
    if (cost.bound == sim::Bound::memory) {
      item.least = cost.bytes / (cluster.device.memory_bandwidth * share);
    }
  }
  if (!cluster.calibration) return item;
  item.limit = "measured";
  item.least = 0;
  return item;
}

namespace {

std::vector<StepItem> last_step(const Recording& recording, const sim::Timeline& timeline,
                                const sim::ClusterSpec& cluster, std::int64_t layers) {
  std::map<std::tuple<std::string, Phase, std::string, std::string>, StepItem> items;
  const auto& events = recording.trace.events();
  const int last = events.empty() ? 0 : events.back().scope.step;
  EventCounts counts(recording.trace);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& event = events[i];
    if (event.scope.step != last || !takes_time(event)) continue;
    const StepItem one = explain_event(event, cluster);
    const std::string kind = layer_kind(event, layers);
    StepItem& item = items[{short_name(event), event.scope.phase, kind, one.limit}];
    if (item.count == 0) {
      item.operation = short_name(event);
      item.phase = name_of(event.scope.phase);
      item.layers = kind;
      item.limit = one.limit;
    }
    const std::int64_t count = counts.of(i);
    const auto times = static_cast<double>(count);
    item.count += count;
    item.seconds +=
        times * 1e-12 * static_cast<double>(timeline.events[i].end - timeline.events[i].start);
    item.flops += times * one.flops;
    item.bytes += times * one.bytes;
    item.least += times * one.least;
  }
  std::vector<StepItem> list;
  for (auto& [key, item] : items) list.push_back(std::move(item));
  std::ranges::stable_sort(list, std::greater{}, &StepItem::seconds);
  return list;
}

struct Change {
  const char* twice;
  void (*apply)(sim::ClusterSpec& cluster);
};

constexpr std::array kChanges = {
    Change{"FLOP/s",
           [](sim::ClusterSpec& cluster) {
             for (sim::ComputeRate& rate : cluster.device.rates) rate.peak *= 2;
           }},
    Change{"memory bandwidth",
           [](sim::ClusterSpec& cluster) { cluster.device.memory_bandwidth *= 2; }},
    Change{"bandwidth within a node",
           [](sim::ClusterSpec& cluster) {
             cluster.intra.bandwidth *= 2;
             cluster.intra.all_reduce_rate *= 2;
           }},
    Change{"bandwidth between nodes",
           [](sim::ClusterSpec& cluster) { cluster.inter.bandwidth *= 2; }},
    Change{"bandwidth to the host", [](sim::ClusterSpec& cluster) { cluster.host.bandwidth *= 2; }},
    Change{"bandwidth of files", [](sim::ClusterSpec& cluster) { cluster.storage.bandwidth *= 2; }},
    Change{"host memory bandwidth",
           [](sim::ClusterSpec& cluster) { cluster.host_memory_bandwidth *= 2; }},
    Change{"speed of the host that issues", [](sim::ClusterSpec& cluster) {
             cluster.device.launch_seconds /= 2;
             cluster.device.software.collective_host_seconds /= 2;
             cluster.step_seconds /= 2;
           }}};

// A calibrated cluster's prices are no functions of these.
std::vector<Lever> levers(const Scenario& scenario, const Recording& recording,
                          const sim::ClusterSpec& cluster, double step_seconds) {
  std::vector<Lever> list;
  for (const Change& change : kChanges) {
    if (cluster.calibration) break;
    sim::ClusterSpec changed = cluster;
    change.apply(changed);
    const double seconds = price_run(scenario, recording, changed).step_time.median;
    if (seconds < 0.999 * step_seconds) list.push_back({change.twice, seconds});
  }
  std::ranges::stable_sort(list, {}, &Lever::step_seconds);
  return list;
}

}  // namespace

Explanation explain(const Scenario& scenario, const Recording& recording, RunResult result,
                    const sim::Timeline& timeline) {
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  Explanation out;
  out.result = std::move(result);
  out.result.device_capacity = simulated_device(scenario, cluster).memory;
  out.step = last_step(recording, timeline, cluster, scenario.model.layers);
  const auto curve = sim::memory_over_time(recording.trace, timeline.events, MemorySpace::device);
  if (const auto peak = sim::peak_point(curve); peak >= 0) {
    out.peak = sim::held_after(recording.trace, curve[static_cast<std::size_t>(peak)].event,
                               MemorySpace::device);
  }
  out.software = software_bytes_or_why(scenario, recording.strategy);
  out.levers = levers(scenario, recording, cluster, out.result.step_time.median);
  return out;
}

Explanation explain(const Scenario& scenario, const ImportedStrategy& imported) {
  Replay run = replay(scenario, imported);
  write_origin(scenario, imported, "sim", run.result);
  return explain(scenario, run.recording, std::move(run.result), run.timeline());
}

}  // namespace zl
