// What a scheduler hands out: the timeline when all events have run, or where it is stuck.
#include <algorithm>
#include <utility>

#include "simulator/scheduler.h"

namespace zl::sim {

std::string Scheduler::stuck_at() const {
  if (waiting_.empty()) return "";
  const Issued& first = waiting_.front();
  return "rank " + std::to_string(rank_) + " waits in step " +
         std::to_string(first.event->scope.step) + " at event " + std::to_string(first.index) +
         ", " + describe(*first.event);
}

WorkingRanks Scheduler::working() const {
  WorkingRanks found{ranks_, {}};
  const auto add = [&](std::size_t event, EventTime time) {
    if (uses_cores(trace_.events()[event])) found.times.push_back(time);
  };
  for (std::size_t i = 0; i < timeline_.events.size(); ++i) add(i, timeline_.events[i]);
  for (const RoundTimes& each : round_times_) {
    const Round& round = trace_.rounds()[each.round];
    for (std::size_t i = 0; i < each.times.size(); ++i) {
      add(round.first + i % (round.last - round.first), each.times[i]);
    }
  }
  return found;
}

EventPaces Scheduler::paces(const SharedClock& clock) const {
  const auto of = [&](const std::vector<EventTime>& times) {
    std::vector<double> paces;
    for (const EventTime& time : times) paces.push_back(clock.pace(time));
    return paces;
  };
  EventPaces paces{of(timeline_.events), {}};
  for (const RoundTimes& each : round_times_) paces.again.push_back(of(each.times));
  return paces;
}

// A step ends when its last event has, whichever stream runs it.
std::vector<StepSpan> Scheduler::step_spans() const {
  std::vector<StepSpan> spans;
  std::int64_t begin = 0, end = 0;
  std::size_t index = 0;
  for (const Step& step : steps_) {
    const std::size_t first = index;
    for (; index < step.last; ++index) end = std::max(end, timeline_.events[index].end);
    end = std::max(end, step.host_end);
    spans.push_back({step.step, first, step.last, begin, end, step.doubt});
    begin = end;
  }
  return spans;
}

Timeline Scheduler::finish() {
  if (trace_.events().empty()) return {};
  pass_round_ends();
  close_step();
  const std::vector<StepSpan> spans = step_spans();
  const double error =
      cluster_.calibration ? cluster_.calibration->step_error : cluster_.step_error;
  KnownErrors errors{cluster_.spread[static_cast<std::size_t>(CostClass::host)], error, {}};
  // The peaks of a shared machine were measured, or guessed: no law of nature.
  for (std::size_t i = 0; i < kDTypes && cluster_.shared_cores == 0; ++i) {
    errors.peaks[i] = cluster_.device.rates[i].peak;
  }
  timeline_.steps = account_steps(trace_, timeline_.events, held_, spans, errors, round_times_);
  timeline_.total = spans.back().end + delay_by_left_out();
  trace_back();
  return std::move(timeline_);
}

// What ran behind rounds that were left out ran later by what they take: by how much at the end.
std::int64_t Scheduler::delay_by_left_out() {
  std::int64_t delay = 0;
  for (std::size_t i = 0; i < round_times_.size(); ++i) {
    delay += round_times_[i].left_out * round_times_[i].period;
    const bool is_last = i + 1 == round_times_.size();
    const std::size_t first = trace_.rounds()[round_times_[i].round].last;
    const std::size_t last =
        is_last ? timeline_.events.size() : trace_.rounds()[round_times_[i + 1].round].last;
    for (std::size_t event = first; event < last; ++event) {
      timeline_.events[event].start += delay;
      timeline_.events[event].end += delay;
    }
  }
  return delay;
}

void Scheduler::trace_back() {
  const auto last =
      std::max_element(timeline_.events.begin(), timeline_.events.end(),
                       [](const EventTime& a, const EventTime& b) { return a.end < b.end; });
  auto index = static_cast<std::int32_t>(last - timeline_.events.begin());
  for (; index != kNone; index = before_[index]) {
    timeline_.critical_path.push_back(index);
  }
  std::reverse(timeline_.critical_path.begin(), timeline_.critical_path.end());
}

}  // namespace zl::sim
