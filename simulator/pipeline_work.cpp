#include "simulator/pipeline_work.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/collective_kind.h"
#include "core/base/stream.h"
#include "simulator/cost/group_of.h"

namespace zl::sim {
namespace {

constexpr std::uint8_t kSends = 1;  // `kind` of a message

bool is_work(const TraceEvent& event) {
  const bool computes = event.type == EventType::op || event.type == EventType::collective;
  return computes && event.stream == static_cast<std::uint8_t>(StreamId::compute);
}

// What a phase is a part of; none: of whatever is under way.
std::optional<Phase> kind_of(Phase phase) {
  if (phase == Phase::recompute || phase == Phase::recompute_products) return Phase::backward;
  if (phase == Phase::gather || phase == Phase::reduce || phase == Phase::other) return {};
  return phase;
}

// What belongs to no micro-batch is apart where it waits for longer than it has run.
bool joins(const WorkSpan& span, const Scope& scope, std::int64_t start) {
  if (span.micro < 0 && start - span.time.end > span.time.end - span.time.start) return false;
  if (span.step != scope.step || span.micro != scope.micro || span.chunk != scope.chunk) {
    return false;
  }
  return !kind_of(scope.phase) || !kind_of(span.kind) || kind_of(scope.phase) == span.kind;
}

// The messages of one stream from one trace to another, of one micro-batch of a step, are received
// in the order of their sends. (Of two traces each may leave out rounds of its own.)
using Way = std::tuple<std::size_t, std::size_t, std::uint8_t, std::int32_t, std::int32_t>;
Way way_of(std::size_t from, std::size_t to, const TraceEvent& event) {
  return {from, to, event.stream, event.scope.step, event.scope.micro};
}

std::optional<std::size_t> trace_of(std::span<const RankTrace> traces, int rank) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (std::ranges::binary_search(traces[i].ranks, rank)) return i;
  }
  return {};
}

}  // namespace

std::string number_of(const WorkSpan& work) {
  if (work.micro < 0) return {};
  std::string number = std::to_string(work.micro);
  for (int chunk = 0; chunk < work.chunk; ++chunk) number += "·";
  return number;
}

std::vector<WorkSpan> work_spans(const Trace& trace, const std::vector<EventTime>& times) {
  std::vector<WorkSpan> spans;
  std::int32_t index = -1;
  for (const TraceEvent& event : trace.events()) {
    ++index;
    if (!is_work(event)) continue;
    const EventTime& time = times[static_cast<std::size_t>(index)];
    const Scope& scope = event.scope;
    if (spans.empty() || !joins(spans.back(), scope, time.start)) {
      spans.push_back({kind_of(scope.phase).value_or(scope.phase), scope.step, scope.micro,
                       scope.chunk, index, time});
      continue;
    }
    spans.back().time.end = std::max(spans.back().time.end, time.end);
    if (!kind_of(spans.back().kind)) spans.back().kind = kind_of(scope.phase).value_or(scope.phase);
  }
  return spans;
}

std::vector<Passage> passages(std::span<const RankTrace> traces,
                              std::span<const Timeline> timelines) {
  std::map<Way, std::vector<Passage>> sent;
  std::map<Way, std::size_t> received;
  const auto each_message = [&](std::uint8_t kind, auto&& take) {
    for (std::size_t i = 0; i < traces.size(); ++i) {
      std::int32_t index = -1;
      for (const TraceEvent& event : traces[i].trace->events()) {
        ++index;
        if (event.type != EventType::message || event.kind != kind) continue;
        if (static_cast<Axis>(event.axis) != Axis::pipeline) continue;
        const auto other = trace_of(traces, peer_of(event, traces[i].ranks.front()));
        if (other) take(i, *other, event, index);
      }
    }
  };
  each_message(kSends, [&](std::size_t from, std::size_t to, const TraceEvent& event, auto index) {
    sent[way_of(from, to, event)].push_back({from, to, index, -1, event.scope.step,
                                             event.scope.micro,
                                             timelines[from].events[std::size_t(index)]});
  });
  each_message(0, [&](std::size_t to, std::size_t from, const TraceEvent& event, auto index) {
    const Way way = way_of(from, to, event);
    std::vector<Passage>& on_way = sent[way];
    const std::size_t nth = received[way]++;
    if (nth >= on_way.size()) return;
    on_way[nth].received = index;
    on_way[nth].time.end = timelines[to].events[std::size_t(index)].end;
  });
  std::vector<Passage> all;
  for (auto& [way, on_way] : sent) {
    on_way.resize(std::min(on_way.size(), received[way]));
    all.insert(all.end(), on_way.begin(), on_way.end());
  }
  return all;
}

}  // namespace zl::sim
