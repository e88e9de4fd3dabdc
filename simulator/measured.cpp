#include "simulator/measured.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/base/median.h"
#include "core/device/device.h"
#include "simulator/cluster/coefficients.h"

namespace zl::sim {
namespace {

bool is_work(const TraceEvent& event) {
  return event.type == EventType::op || event.type == EventType::collective ||
         event.type == EventType::copy || event.type == EventType::transfer;
}

bool is_timed(const TraceEvent& event) {
  return is_work(event) && event.scope.step > 0 && event.timing.end_ns >= event.timing.start_ns &&
         event.timing.start_ns > 0;
}

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// The work of each stream by start.
class StreamTimes {
 public:
  explicit StreamTimes(const Trace& trace) {
    for (const TraceEvent& event : trace.events()) {
      if (is_timed(event)) streams_[event.stream].push_back(event.timing);
    }
  }

  bool runs_beside_another(const TraceEvent& event) const {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      if (stream != event.stream && busy(streams_[stream], event.timing)) return true;
    }
    return false;
  }

 private:
  static bool busy(const std::vector<Timing>& stream, const Timing& time) {
    const auto after = std::partition_point(stream.begin(), stream.end(), [&](const Timing& other) {
      return other.end_ns <= time.start_ns;
    });
    return after != stream.end() && after->start_ns < time.end_ns;
  }

  std::array<std::vector<Timing>, kStreams> streams_;
};

using Kind = std::tuple<EventType, bool, std::uint8_t, DType, Variant>;  // as Sample, variant last
using Shape = std::pair<double, double>;
struct Sum {
  double seconds = 0;
  std::int64_t count = 0;
};
using Shapes = std::map<Shape, std::vector<double>>;  // seconds

// Of those that take not twenty times as long as the one in the middle.
double undisturbed_mean(std::vector<double> values) {
  std::erase_if(values, [limit = 20 * median(values)](double value) { return value > limit; });
  return mean(values);
}

double typical(const std::vector<double>& values, const Sampling& sampling) {
  return sampling.without_disturbed ? undisturbed_mean(values) : mean(values);
}

Shape shape_of(const TraceEvent& event) {
  double units = event.type == EventType::op ? event.flops : 0;
  if (event.type == EventType::collective) units = static_cast<double>(event.n);
  if (event.type == EventType::transfer) units = static_cast<double>(event.m);
  return {units, priced_bytes(event)};
}

Kind kind_of(const TraceEvent& event) {
  const bool moves = event.type == EventType::copy || event.type == EventType::transfer;
  if (moves) return {event.type, false, event.kind, DType::u8, Variant::none};
  const bool on_host =
      event.type == EventType::op && event.stream == static_cast<std::uint8_t>(StreamId::host);
  return {event.type, on_host, event.kind, event.dtype, product_variant(event)};
}

// First and last instant of each step that was timed, in order.
std::map<int, Timing> step_spans(const Trace& trace) {
  std::map<int, Timing> spans;
  for (const TraceEvent& event : trace.events()) {
    if (!is_timed(event)) continue;
    Timing& span = spans.try_emplace(event.scope.step, event.timing).first->second;
    span.start_ns = std::min(span.start_ns, event.timing.start_ns);
    span.end_ns = std::max(span.end_ns, event.timing.end_ns);
  }
  return spans;
}

// As MeasuredTrace::quiet says.
std::set<int> steps_that_count(const std::map<int, Timing>& spans, bool quiet) {
  std::vector<std::pair<std::int64_t, int>> by_length;
  std::int64_t end = 0;
  for (const auto& [step, span] : spans) {
    if (end > 0) by_length.emplace_back(span.end_ns - end, step);
    end = span.end_ns;
  }
  std::ranges::sort(by_length);
  std::set<int> steps;
  const std::size_t count = by_length.size(), middle = (count + 1) / 4;
  const std::size_t first = quiet ? 0 : middle;
  const std::size_t last = quiet ? quicker_half(count) : count - middle;
  for (std::size_t i = first; i < last; ++i) steps.insert(by_length[i].second);
  return steps;
}

// What of a compute stream's gap is none: while other streams' work ran within, as that of a rank
// that communicates itself.
std::int64_t nanoseconds_within(std::vector<Timing> others, std::int64_t from, std::int64_t to) {
  std::ranges::sort(others, {}, &Timing::start_ns);
  std::int64_t sum = 0, counted = from;  // until then
  for (const Timing& other : others) {
    if (other.start_ns < from || other.end_ns > to) continue;
    sum += std::max<std::int64_t>(0, other.end_ns - std::max(other.start_ns, counted));
    counted = std::max(counted, other.end_ns);
  }
  return sum;
}

// Of these steps: seconds between events of the compute stream, and the events issued meanwhile.
Sum event_gaps(const Trace& trace, const std::set<int>& steps) {
  Sum gaps;
  const TraceEvent* last = nullptr;  // on the compute stream, nothing waited for since
  std::vector<Timing> others;        // since then, of other streams
  std::int64_t issued = 0;
  std::size_t index = 0;
  auto round = trace.rounds().begin();
  for (const TraceEvent& event : trace.events()) {
    // What ran between a round that is counted and what is held next, is not.
    for (; round != trace.rounds().end() && round->last <= index; ++round) {
      if (round->count > 1) last = nullptr;
    }
    ++index;
    if (event.type == EventType::wait || event.type == EventType::synchronize) last = nullptr;
    if (!is_timed(event) || !steps.contains(event.scope.step)) continue;
    ++issued;
    if (event.stream != static_cast<std::size_t>(StreamId::compute)) {
      others.push_back(event.timing);
      continue;
    }
    if (last != nullptr && last->scope.step == event.scope.step) {
      const std::int64_t from = last->timing.end_ns, to = event.timing.start_ns;
      gaps.seconds += seconds(to - from - nanoseconds_within(others, from, to));
      gaps.count += issued;
    }
    last = &event;
    others.clear();
    issued = 0;
  }
  return gaps;
}

// Of these steps: seconds from the end of the one before, and their number.
Sum step_gaps(const std::map<int, Timing>& spans, const std::set<int>& steps) {
  Sum gaps;
  std::int64_t end = 0;
  for (const auto& [step, span] : spans) {
    if (steps.contains(step)) {
      gaps.seconds += seconds(std::max<std::int64_t>(0, span.start_ns - end));
      ++gaps.count;
    }
    end = span.end_ns;
  }
  return gaps;
}

// One gap's seconds that are least off, of the runs' steps (least squares of gap * count / length).
class Gap {
 public:
  void add(const Sum& gaps, double length) {
    const double count = static_cast<double>(gaps.count) / length;
    product_ += count * gaps.seconds / length;
    square_ += count * count;
  }
  double seconds() const { return square_ > 0 ? std::max(0.0, product_ / square_) : 0; }

 private:
  double product_ = 0, square_ = 0;
};

// The work of some steps by kind and shape: all, and what ran alone.
struct WorkTimes {
  std::map<Kind, Shapes> alone, all;

  void add(const TraceEvent& event, double seconds, bool is_alone) {
    all[kind_of(event)][shape_of(event)].push_back(seconds);
    if (is_alone) alone[kind_of(event)][shape_of(event)].push_back(seconds);
  }
  // What ran alone, unless nothing of the kind did.
  const Shapes& of(const Kind& kind) const {
    const auto undisturbed = alone.find(kind);
    return undisturbed == alone.end() ? all.at(kind) : undisturbed->second;
  }
  bool has(const Kind& kind, const Shape& shape) const {
    const auto shapes = all.find(kind);
    return shapes != all.end() && shapes->second.contains(shape);
  }
};

Sample sample_of(const Kind& kind, const Shape& shape, double seconds, std::size_t count) {
  const auto& [type, on_host, index, dtype, variant] = kind;
  return {type,         on_host, variant,
          index,        dtype,   shape.first,
          shape.second, seconds, static_cast<std::int64_t>(count)};
}

}  // namespace

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<Sample> samples_of(const std::vector<MeasuredTrace>& traces, const Sampling& sampling) {
  WorkTimes counted, others;
  for (const MeasuredTrace& measured : traces) {
    const StreamTimes streams(*measured.trace);
    const std::map<int, Timing> spans = step_spans(*measured.trace);
    const std::set<int> steps = steps_that_count(spans, measured.quiet);
    for (const TraceEvent& event : measured.trace->events()) {
      if (!is_timed(event) || event.scope.step == spans.begin()->first) continue;
      const Timing& time = event.timing;
      const bool waited = sampling.without_waiting && time.met_ns != 0;
      (steps.contains(event.scope.step) ? counted : others)
          .add(event, seconds(time.end_ns - (waited ? time.met_ns : time.start_ns)),
               !streams.runs_beside_another(event));
    }
  }
  std::vector<Sample> samples;
  const auto add = [&](const WorkTimes& work, const auto& is_wanted) {
    for (const auto& [kind, shapes] : work.all) {
      for (const auto& [shape, times] : work.of(kind)) {
        if (!is_wanted(kind, shape)) continue;
        samples.push_back(sample_of(kind, shape, typical(times, sampling), times.size()));
      }
    }
  };
  add(counted, [](const Kind&, const Shape&) { return true; });
  add(others, [&](const Kind& kind, const Shape& shape) { return !counted.has(kind, shape); });
  std::ranges::stable_sort(samples, {}, [](const Sample& sample) {
    return std::tuple(Kind(sample.type, sample.on_host, sample.kind, sample.dtype, sample.variant),
                      sample.units, sample.bytes);
  });
  return samples;
}

HostGaps host_gaps(const std::vector<MeasuredTrace>& traces) {
  Gap events, steps;
  for (const MeasuredTrace& measured : traces) {
    const std::map<int, Timing> spans = step_spans(*measured.trace);
    const std::set<int> counted = steps_that_count(spans, measured.quiet);
    double length = 0;
    for (const int step : counted) {
      length += seconds(spans.at(step).end_ns - spans.at(step).start_ns);
    }
    if (length <= 0) continue;
    events.add(event_gaps(*measured.trace, counted), length);
    steps.add(step_gaps(spans, counted), length);
  }
  // The first event of a step is charged like every other.
  return {events.seconds(), std::max(0.0, steps.seconds() - events.seconds())};
}

std::vector<double> step_seconds(const Trace& trace) {
  std::vector<double> durations;
  std::int64_t end = 0;
  for (const auto& [step, span] : step_spans(trace)) {
    if (end > 0) durations.push_back(seconds(span.end_ns - end));
    end = span.end_ns;
  }
  return durations;
}

bool has_overlap(const Trace& trace) {
  const StreamTimes streams(trace);
  return std::any_of(trace.events().begin(), trace.events().end(), [&](const TraceEvent& event) {
    return is_timed(event) && streams.runs_beside_another(event);
  });
}

}  // namespace zl::sim
