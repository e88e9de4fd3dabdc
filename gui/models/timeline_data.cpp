#include "gui/models/timeline_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/base/stream.h"
#include "core/ops/op.h"
#include "gui/models/meaning.h"
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

std::shared_ptr<const OpNames> op_names(const Study& study, const StrategyStudy& strategy) {
  const std::int64_t rows =
      strategy.imported.strategy.micro_batch * study.scenario.run.sequence_length;
  return std::make_shared<const OpNames>(strategy.recording->trace, study.scenario.model, rows);
}

TimelineData timeline_data(const Study& study, const StrategyStudy& strategy,
                           std::shared_ptr<const OpNames> names) {
  TimelineData data;
  for (int phase = 0; phase < kPhases; ++phase) {
    data.categories.emplace_back(name_of(static_cast<Phase>(phase)));
    data.styles.push_back(style_of(static_cast<Phase>(phase)));
    data.explained.push_back(explained(static_cast<Phase>(phase)));
  }
  const double zero = steady_step(strategy).from;
  Lane phases{.name = QObject::tr("phases"), .spans = {}},
      layers{.name = QObject::tr("layers"), .spans = {}};
  phases.is_summary = layers.is_summary = true;
  std::array<Lane, kStreams> lanes;
  std::int32_t index = -1;
  for (const TraceEvent& event : strategy.recording->trace.events()) {
    ++index;
    if (!takes_time(event)) continue;
    const sim::EventTime& time = strategy.timeline.events[static_cast<std::size_t>(index)];
    const Span span{seconds(time.start) - zero, seconds(time.end) - zero, index,
                    static_cast<std::uint8_t>(event.scope.phase)};
    lanes[event.stream].spans.push_back(span);
    if (event.stream != static_cast<std::uint8_t>(StreamId::compute)) continue;
    const auto& events = strategy.recording->trace.events();
    extend(phases, span, [&](std::int32_t before) {
      const Scope &a = events[static_cast<std::size_t>(before)].scope, &b = event.scope;
      return a.phase == b.phase && a.step == b.step;
    });
    extend(layers, span, [&](std::int32_t before) {
      const Scope &a = events[static_cast<std::size_t>(before)].scope, &b = event.scope;
      return a.phase == b.phase && a.unit == b.unit && a.step == b.step;
    });
  }
  const auto recording = strategy.recording;
  phases.describe = [recording](std::int32_t event) {
    const Scope& scope = recording->trace.events()[static_cast<std::size_t>(event)].scope;
    return QString(name_of(scope.phase));
  };
  layers.describe = [recording, names](std::int32_t event) {
    const Scope& scope = recording->trace.events()[static_cast<std::size_t>(event)].scope;
    const QString& layer = names->layer(event);
    return layer.isEmpty() ? QString(name_of(scope.phase)) : layer;
  };
  const QString ranks = study.scenario.run.ranks > 1
                            ? QObject::tr("ranks 0-%1: ").arg(study.scenario.run.ranks - 1)
                            : QObject::tr("rank 0: ");
  data.lanes = {std::move(phases), std::move(layers)};
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (lanes[i].spans.empty()) continue;
    lanes[i].name = ranks + QString(name_of(static_cast<StreamId>(i)));
    lanes[i].describe = [names](std::int32_t event) { return names->whole(event); };
    data.lanes.push_back(std::move(lanes[i]));
  }
  MemoryTrack memory;
  memory.name = QObject::tr("memory");
  for (const sim::MemoryPoint& point : strategy.memory) {
    memory.x.push_back(seconds(point.time) - zero);
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
  for (Lane& lane : second.lanes) {
    lane.name = second_name + ": " + short_lane(lane.name);
    lane.source = 1;
    first.lanes.push_back(std::move(lane));
  }
  second.memory.front().name = second_name + QObject::tr(": memory");
  first.memory.push_back(std::move(second.memory.front()));
  return first;
}

Table range_totals(const StrategyStudy& strategy, const OpNames& names, TimelinePlot::Range range,
                   TotalsBy by) {
  struct Sum {
    std::int64_t count = 0;
    double time = 0;
  };
  std::map<QString, Sum> sums;
  const double zero = steady_step(strategy).from;
  const auto& events = strategy.recording->trace.events();
  double all = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!takes_time(events[i])) continue;
    const sim::EventTime& time = strategy.timeline.events[i];
    const double from = std::max(range.from, seconds(time.start) - zero);
    const double to = std::min(range.to, seconds(time.end) - zero);
    if (to <= from) continue;
    const auto event = static_cast<std::int32_t>(i);
    QString name = by == TotalsBy::both    ? names.whole(event)
                   : by == TotalsBy::layer ? names.layer(event)
                                           : names.operation(event);
    if (by == TotalsBy::phase) name = name_of(events[i].scope.phase);
    Sum& sum = sums[name.isEmpty() ? QObject::tr("no layer") : name];
    ++sum.count;
    sum.time += to - from;
    all += to - from;
  }
  Table table;
  table.columns = {{"time", Align::right, Unit::seconds},
                   {"share", Align::right, Unit::fraction},
                   {"times", Align::right},
                   {"what", Align::left}};
  for (const auto& [name, sum] : sums) {
    table.rows.push_back({sum.time, sum.time / all, sum.count, name.toStdString()});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<double>(a[0]) > std::get<double>(b[0]);
  });
  return table;
}

TimelinePlot::Range steady_step(const StrategyStudy& strategy) {
  const double end = seconds(strategy.timeline.total);
  if (strategy.timeline.steps.empty()) return {0, end};
  return {end - seconds(strategy.timeline.steps.back().duration), end};
}

Table cost_card(const Study& study, const StrategyStudy& strategy, const OpNames& names,
                std::int32_t index) {
  const auto at = static_cast<std::size_t>(index);
  const TraceEvent& event = strategy.recording->trace.events()[at];
  const sim::EventTime& time = strategy.timeline.events[at];
  const sim::Price price = sim::op_time(event, study.cluster);
  Table card;
  card.columns = {{"property", Align::left}, {"value", Align::left}};
  const auto row = [&card](const char* name, const QString& value) {
    card.rows.push_back({std::string(name), value.toStdString()});
  };
  row("what", names.whole(index));
  row("operation", QString::fromStdString(short_name(event)));
  row("where", QObject::tr("%1, unit %2, step %3")
                   .arg(name_of(event.scope.phase))
                   .arg(event.scope.unit)
                   .arg(event.scope.step));
  row("type", QString::fromUtf8(name_of(event.dtype)));
  row("runs for", seconds_text(seconds(time.end - time.start)));
  row("alone", seconds_text(seconds(price.picoseconds)) + " ± " + share_text(price.spread));
  row("priced as", QString::fromUtf8(sim::name_of(price.cost_class)));
  row("starts in the step", seconds_text(seconds(time.start) - steady_step(strategy).from));
  const std::int32_t before = previous_of(strategy.recording->trace, index);
  const std::int64_t waited = before < 0 ? 0 : time.start - strategy.timeline.events[before].end;
  row("stream idle before", seconds_text(seconds(std::max<std::int64_t>(0, waited))));
  const auto& path = strategy.timeline.critical_path;
  const auto on_path = std::find(path.begin(), path.end(), index);
  row("on the critical path", on_path != path.end() ? QObject::tr("yes") : QObject::tr("no"));
  if (on_path != path.end() && on_path != path.begin()) {
    row("waited for", names.whole(*(on_path - 1)));
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
