// The tables beside a timeline: totals of a range, the cost of an operation, what is live.
#include <algorithm>
#include <cmath>
#include <map>

#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "scenarios/run/explain.h"
#include "simulator/cost/price.h"
#include "simulator/memory_curve.h"

namespace zl::gui {
namespace {

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

Table range_totals(const StrategyStudy& strategy, const OpNames& names, TimelinePlot::Range range,
                   TotalsBy by, int stage) {
  struct Sum {
    std::int64_t count = 0;
    double time = 0;
  };
  std::map<QString, Sum> sums;
  const double zero = steady_step(strategy).from;
  const StageRun run = run_of(strategy, stage);
  const auto& events = run.recording->trace.events();
  double all = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!takes_time(events[i])) continue;
    const sim::EventTime& time = run.timeline->events[i];
    const double from = std::max(range.from, to_seconds(time.start) - zero);
    const double to = std::min(range.to, to_seconds(time.end) - zero);
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

Table cost_card(const Study& study, const StrategyStudy& strategy, const OpNames& names,
                std::int32_t index, int stage) {
  const auto at = static_cast<std::size_t>(index);
  const StageRun run = run_of(strategy, stage);
  const TraceEvent& event = run.recording->trace.events()[at];
  const sim::EventTime& time = run.timeline->events[at];
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
  row("runs for", seconds_text(to_seconds(time.end - time.start)));
  row("alone", seconds_text(to_seconds(price.picoseconds)) + " ± " + share_text(price.spread));
  row("priced as", QString::fromUtf8(sim::name_of(price.cost_class)));
  StepItem why = explain_event(event, study.cluster);
  why.seconds = to_seconds(time.end - time.start);
  if (!why.limit.empty()) row("limited by", QString::fromStdString(why.limit));
  const bool computes = why.flops > 0;
  const double rate = (computes ? why.flops : why.bytes) / why.seconds;
  if (why.seconds > 0 && rate > 0) {
    const Unit unit = computes ? Unit::flop_rate : Unit::byte_rate;
    row("at a rate of", QString::fromStdString(readable(rate, unit)));
  }
  if (why.of_peak() > 0) row("share of its peak", share_text(why.of_peak()));
  row("starts in the step", seconds_text(to_seconds(time.start) - steady_step(strategy).from));
  if (event.scope.micro >= 0) row("micro-batch", QString::number(event.scope.micro));
  const std::int32_t before = previous_of(run.recording->trace, index);
  const std::int64_t waited = before < 0 ? 0 : time.start - run.timeline->events[before].end;
  row("stream idle before", seconds_text(to_seconds(std::max<std::int64_t>(0, waited))));
  const auto& path = run.timeline->critical_path;
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

Table live_table(const StrategyStudy& strategy, double at, int stage) {
  Table table;
  table.columns = {{"bytes", Align::right, Unit::bytes},
                   {"tag", Align::left},
                   {"what", Align::left},
                   {"blocks", Align::right},
                   {"units", Align::right}};
  const auto picoseconds = static_cast<std::int64_t>(std::llround(at * 1e12));
  const std::vector<sim::MemoryPoint> memory = memory_of(strategy, stage);
  const auto after = std::partition_point(
      memory.begin(), memory.end(),
      [&](const sim::MemoryPoint& point) { return point.time <= picoseconds; });
  if (after == memory.begin()) return table;
  // Several allocations share a moment: the peak of the moment is what a person clicked on.
  const std::int64_t moment = (after - 1)->time;
  auto highest = after - 1;
  for (auto point = after; point != memory.begin() && (point - 1)->time == moment;) {
    --point;
    if (point->total() >= highest->total()) highest = point;
  }
  for (const sim::HeldItem& each : sim::held_after(run_of(strategy, stage).recording->trace,
                                                   highest->event, MemorySpace::device)) {
    std::string units = each.first_unit < 0 ? "" : std::to_string(each.first_unit);
    if (each.last_unit > each.first_unit) units += "–" + std::to_string(each.last_unit);
    table.rows.push_back(
        {each.bytes, std::string(name_of(each.tag)), each.what, each.blocks, units});
  }
  return table;
}

}  // namespace zl::gui
