#include "gui/models/timeline_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/base/stream.h"
#include "core/ops/op.h"
#include "gui/units.h"
#include "simulator/cost/price.h"

namespace zl::gui {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr int kPhases = static_cast<int>(Phase::other) + 1;

double seconds(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * kPicosecond; }

// What ran on the same stream before an event; -1: nothing.
std::int32_t previous_of(const Trace& trace, std::int32_t event) {
  const auto& events = trace.events();
  const std::uint8_t stream = events[event].stream;
  for (std::int32_t i = event - 1; i >= 0; --i) {
    const TraceEvent& each = events[i];
    if (each.stream == stream && takes_time(each)) return i;
  }
  return -1;
}

}  // namespace

TimelineData timeline_data(const Study& study, const StrategyStudy& strategy) {
  TimelineData data;
  for (int phase = 0; phase < kPhases; ++phase) {
    data.categories.emplace_back(name_of(static_cast<Phase>(phase)));
  }
  const auto recording = strategy.recording;
  data.describe = [recording](std::int32_t event) {
    return QString::fromStdString(short_name(recording->trace.events()[event]));
  };
  std::array<Lane, kStreams> lanes;
  std::int32_t index = 0;
  for (const TraceEvent& event : recording->trace.events()) {
    if (takes_time(event)) {
      const sim::EventTime& time = strategy.timeline.events[index];
      lanes[event.stream].spans.push_back({seconds(time.start), seconds(time.end), index,
                                           static_cast<std::uint8_t>(event.scope.phase)});
    }
    ++index;
  }
  const QString ranks = study.scenario.run.ranks > 1
                            ? QObject::tr("ranks 0-%1: ").arg(study.scenario.run.ranks - 1)
                            : QObject::tr("rank 0: ");
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (lanes[i].spans.empty()) continue;
    lanes[i].name = ranks + QString(name_of(static_cast<StreamId>(i)));
    data.lanes.push_back(std::move(lanes[i]));
  }
  for (const sim::MemoryPoint& point : strategy.memory) {
    data.memory_x.push_back(seconds(point.time));
    data.memory_y.push_back(static_cast<double>(point.total()));
  }
  if (study.budget > 0) data.limit = static_cast<double>(study.budget);
  return data;
}

TimelinePlot::Range steady_step(const StrategyStudy& strategy) {
  const double end = seconds(strategy.timeline.total);
  if (strategy.timeline.steps.empty()) return {0, end};
  return {end - seconds(strategy.timeline.steps.back().duration), end};
}

Table cost_card(const Study& study, const StrategyStudy& strategy, std::int32_t index) {
  const auto at = static_cast<std::size_t>(index);
  const TraceEvent& event = strategy.recording->trace.events()[at];
  const sim::EventTime& time = strategy.timeline.events[at];
  const sim::Price price = sim::op_time(event, study.cluster);
  Table card;
  card.columns = {{"property", Align::left}, {"value", Align::left}};
  const auto row = [&card](const char* name, const QString& value) {
    card.rows.push_back({std::string(name), value.toStdString()});
  };
  row("what", QString::fromStdString(short_name(event)));
  row("where", QObject::tr("%1, unit %2, step %3")
                   .arg(name_of(event.scope.phase))
                   .arg(event.scope.unit)
                   .arg(event.scope.step));
  row("type", QString::fromUtf8(name_of(event.dtype)));
  row("runs for", seconds_text(seconds(time.end - time.start)));
  row("alone", seconds_text(seconds(price.picoseconds)) + " ± " + share_text(price.spread));
  row("priced as", QString::fromUtf8(sim::name_of(price.cost_class)));
  row("starts", seconds_text(seconds(time.start)));
  const std::int32_t before = previous_of(strategy.recording->trace, index);
  const std::int64_t waited = before < 0 ? 0 : time.start - strategy.timeline.events[before].end;
  row("stream idle before", seconds_text(seconds(std::max<std::int64_t>(0, waited))));
  const auto& path = strategy.timeline.critical_path;
  const auto on_path = std::find(path.begin(), path.end(), index);
  row("on the critical path", on_path != path.end() ? QObject::tr("yes") : QObject::tr("no"));
  if (on_path != path.end() && on_path != path.begin()) {
    const auto cause = static_cast<std::size_t>(*(on_path - 1));
    row("waited for",
        QString::fromStdString(short_name(strategy.recording->trace.events()[cause])));
  }
  if (event.flops > 0) row("FLOPs", count_text(event.flops));
  row("bytes read", bytes_text(static_cast<double>(event.bytes_read)));
  row("bytes written", bytes_text(static_cast<double>(event.bytes_written)));
  if (event.wire_bytes > 0)
    row("sent by a rank", bytes_text(static_cast<double>(event.wire_bytes)));
  const double moved = static_cast<double>(event.bytes_read + event.bytes_written);
  if (event.flops > 0 && moved > 0) row("FLOPs per byte", count_text(event.flops / moved));
  return card;
}

Table live_table(const StrategyStudy& strategy, double at) {
  Table table;
  table.columns = {{"bytes", Align::right, Unit::bytes},
                   {"tag", Align::left},
                   {"what", Align::left},
                   {"blocks", Align::right},
                   {"units", Align::right}};
  const auto picoseconds = static_cast<std::int64_t>(std::llround(at / kPicosecond));
  const auto after = std::partition_point(
      strategy.memory.begin(), strategy.memory.end(),
      [&](const sim::MemoryPoint& point) { return point.time <= picoseconds; });
  if (after == strategy.memory.begin()) return table;
  // Several allocations share a moment: the peak of the moment is what a person clicked on.
  const std::int64_t moment = (after - 1)->time;
  auto highest = after - 1;
  for (auto point = after; point != strategy.memory.begin() && (point - 1)->time == moment;) {
    --point;
    if (point->total() >= highest->total()) highest = point;
  }
  struct Group {
    int first = 0, last = 0;
    std::int64_t count = 0, bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const sim::LiveBlock& block :
       sim::live_after(strategy.recording->trace, highest->event, MemorySpace::device)) {
    const auto [found, added] = groups.try_emplace({name_of(block.tag), block.what});
    Group& group = found->second;
    group.first = added ? block.unit : std::min(group.first, block.unit);
    group.last = added ? block.unit : std::max(group.last, block.unit);
    group.count += block.count;
    group.bytes += block.bytes;
  }
  for (const auto& [key, group] : groups) {
    std::string units = group.first < 0 ? "" : std::to_string(group.first);
    if (group.last > group.first) units += "–" + std::to_string(group.last);
    table.rows.push_back({group.bytes, key.first, key.second, group.count, units});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[kLiveBytes]) > std::get<std::int64_t>(b[kLiveBytes]);
  });
  return table;
}

}  // namespace zl::gui
