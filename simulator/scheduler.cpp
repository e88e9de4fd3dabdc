#include "simulator/scheduler.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/device/device.h"

namespace zl::sim {
namespace {

constexpr std::size_t kCompute = static_cast<std::size_t>(StreamId::compute);
constexpr std::size_t kCommunication = static_cast<std::size_t>(StreamId::communication);

// Copies and files have engines of their own, the host has processors of its own.
bool on_multiprocessors(std::size_t stream) {
  return stream == kCompute || stream == kCommunication;
}

bool follows_in_exchange(const TraceEvent& event) {
  return event.type == EventType::message && event.id > 0;
}

}  // namespace

Scheduler::Scheduler(const RankTrace& rank, std::size_t self, const ClusterSpec& cluster,
                     Meetings& meetings, SteadyRounds* steady, EventPaces paces)
    : trace_(*rank.trace),
      cluster_(cluster),
      meetings_(meetings),
      self_(self),
      rank_(rank.ranks.empty() ? 0 : rank.ranks.front()),
      ranks_(rank.ranks.empty() ? cluster.devices : static_cast<int>(rank.ranks.size())),
      model_(cluster, rank_),
      steps_(1),
      steady_(steady),
      paces_(std::move(paces)) {
  timeline_.events.resize(trace_.events().size());
  before_.resize(trace_.events().size(), kNone);
  if (!trace_.events().empty()) steps_.back().step = trace_.events().front().scope.step;
  if (reduces_last()) late_ = LateReductions(trace_, model_.overlap_loss());
}

bool Scheduler::advance() {
  bool moved = retry();
  while (waiting_.empty() && issue_next()) moved = true;
  return moved;
}

bool Scheduler::issue_next() {
  if (!waiting_.empty() && at_round_edge()) return false;
  pass_round_ends();
  if (next_ == trace_.events().size()) return false;
  const TraceEvent& event = trace_.events()[next_];
  if (is_host_held(event)) return false;
  if (!follows_in_exchange(event)) end_exchange();
  enter_step(event.scope);
  pass_round_begin();
  issue(event);
  ++next_;
  return true;
}

bool Scheduler::retry() {
  bool moved = false;
  std::array<bool, kStreamsWithMessages> held{};
  for (auto issued = waiting_.begin(); issued != waiting_.end();) {
    const std::size_t stream = issued->stream;
    if ((held[stream] && !joins_exchange(*issued)) || !run(*issued)) {
      held[stream] = true;
      ++issued;
      continue;
    }
    --streams_[stream].waiting;
    issued = waiting_.erase(issued);
    moved = true;
  }
  return moved;
}

bool Scheduler::is_host_held(const TraceEvent& event) const {
  if (waiting_.empty()) return false;
  const bool ends = exchanges_on_ != nullptr && !follows_in_exchange(event);
  if (ends && exchanges_on_->waiting > 0) return true;
  if (cluster_.compute_is_host && streams_[kCompute].waiting > 0) return true;
  return event.type == EventType::synchronize && streams_[event.stream].waiting > 0;
}

void Scheduler::enter_step(const Scope& scope) {
  if (scope.step <= steps_.back().step) return;
  close_step();
  steps_.push_back({.step = scope.step});
}

void Scheduler::close_step() {
  host_ += model_.step_picoseconds();
  sync_inline_compute();
  steps_.back().last = next_;
  steps_.back().host_end = host_;
}

void Scheduler::issue(const TraceEvent& event) {
  if (!again_) timeline_.events[next_] = {host_, host_};
  switch (event.type) {
    case EventType::op:
    case EventType::collective:
    case EventType::message:
    case EventType::copy:
    case EventType::transfer:
      if (!follows_in_exchange(event)) {
        host_ += at_pace(pace_of(next_), model_.issue_picoseconds(event));
      }
      sync_inline_compute();
      begin_exchange(event);
      return enqueue(event);
    case EventType::wait:
      if (event.stream != kCompute) hand_over(next_);
      return enqueue(event);
    case EventType::record:
      return enqueue(event);
    case EventType::synchronize:
      host_waits_for(streams_[event.stream]);
      return sync_inline_compute();
    case EventType::allocate:
    case EventType::free:
      return;
  }
}

void Scheduler::enqueue(const TraceEvent& event) {
  Issued issued{next_, steps_.size() - 1, &event, stream_of(event), host_, host_cause_};
  Stream& stream = streams_[issued.stream];
  if (event.type == EventType::record) {
    ZL_CHECK(event.id >= 0 && event.id < (std::int64_t{1} << 32), "event ids count up from 0");
    const auto id = static_cast<std::size_t>(event.id);
    if (id >= recorded_.size()) recorded_.resize(std::max(id + 1, 2 * recorded_.size()));
    recorded_[id].is_pending = true;
  }
  if ((stream.waiting == 0 || joins_exchange(issued)) && run(issued)) return;
  ++stream.waiting;
  waiting_.push_back(issued);
}

// A message waits for none of its own exchange.
bool Scheduler::joins_exchange(const Issued& issued) const {
  const TraceEvent& event = *issued.event;
  return follows_in_exchange(event) &&
         streams_[issued.stream].exchange == issued.index - static_cast<std::size_t>(event.id);
}

bool Scheduler::run(Issued& issued) {
  switch (issued.event->type) {
    case EventType::message:
      return message(issued);
    case EventType::record:
      record(issued);
      return true;
    case EventType::wait:
      return wait(issued);
    default:
      return work(issued);
  }
}

bool Scheduler::work(Issued& issued) {
  const TraceEvent& event = *issued.event;
  Stream& stream = streams_[event.stream];
  const bool late = issued.time > stream.ready;
  if (!again_) before_[issued.index] = late ? issued.cause : stream.cause;
  host_bound_ |= late;
  std::int64_t start = std::max(issued.time, stream.ready);
  if (event.type == EventType::collective && waits_for_others(event)) {
    if (!issued.arrived) meetings_.arrive(self_, event, start);
    issued.arrived = true;
    const auto complete = meetings_.complete(self_, event);
    if (!complete) return false;
    // What it waited for is another's.
    if (*complete > start && !again_) before_[issued.index] = kNone;
    hold(start, *complete);
    start = std::max(start, *complete);
  }
  const Price price = price_of(issued);
  if (defers(event)) {
    deferred_.push_back({issued.index, issued.step, price});
    time_of(issued.index) = {start, start};
    return true;
  }
  if (event.stream == kCompute && event.scope.phase == Phase::optimizer) {
    start = end_reductions(issued, start);
  }
  if (start > stream.busy_until) stream.busy_from = start;
  stream.busy_until = finish_work(event.stream, start, price.picoseconds);
  const std::int64_t end = std::max(stream.busy_until, start + price.link_picoseconds);
  end_work(issued, {start, end}, price);
  if (cluster_.compute_is_host && event.stream == kCompute) host_waits_for(stream);
  return true;
}

void Scheduler::add_doubt(std::size_t step, const Price& price) {
  steps_[step].doubt[static_cast<std::size_t>(price.cost_class)] +=
      static_cast<double>(price.picoseconds) * price.spread;
}

// Engines of their own move messages: they neither slow the cores nor are slowed.
bool Scheduler::message(const Issued& issued) {
  const TraceEvent& event = *issued.event;
  Stream& stream = streams_[issued.stream];
  const std::size_t first = issued.index - static_cast<std::size_t>(event.id);
  if (stream.exchange != first) {
    stream.exchange = first;
    stream.exchange_start = std::max(issued.time, stream.ready);
    stream.exchange_cause = issued.time > stream.ready ? issued.cause : stream.cause;
  }
  const Price price = price_of(issued);
  const std::int64_t duration = std::max(price.picoseconds, price.link_picoseconds);
  EventTime time{stream.exchange_start, stream.exchange_start + duration};
  const bool late = issued.time > stream.ready;
  bool waits = false;
  if (!again_) before_[issued.index] = stream.exchange_cause;
  if (meetings_.has_others(self_, event)) {
    if (event.kind == 1) {
      time.end = time.start + on_shared_link(time.start, duration);
      meetings_.send(self_, event, time);
    } else {
      const auto sent = meetings_.receive(self_, event);
      if (!sent) return false;
      waits = sent->start > time.start;
      if (waits && !again_) before_[issued.index] = kNone;
      hold(time.start, sent->start);
      time = {std::max(time.start, sent->start), std::max(time.start, sent->end)};
    }
  }
  host_bound_ |= late && !waits;
  end_work(issued, time, price);
  if (cluster_.compute_is_host && event.stream == kCompute) host_waits_for(stream);
  return true;
}

void Scheduler::end_work(const Issued& issued, EventTime time, const Price& price) {
  Stream& stream = streams_[issued.stream];
  require_in_range(time.end);
  stream.ready = std::max(stream.ready, time.end);
  stream.cause = static_cast<std::int32_t>(issued.index);
  time_of(issued.index) = time;
  add_doubt(issued.step, price);
}

// End of `work` picoseconds that start at `start`, slowed by the other streams while they are busy:
// where several are, by the one that slows it most.
std::int64_t Scheduler::finish_work(std::size_t stream, std::int64_t start,
                                    std::int64_t work) const {
  std::int64_t now = start;
  for (std::int64_t left = work; left > 0;) {
    const auto [loss, until] = loss_at(stream, now);
    if (loss == 0 && left <= until - now) return now + left;
    const double pace = 1 - loss;
    const auto done = static_cast<std::int64_t>(pace * static_cast<double>(until - now));
    if (left <= done) return now + static_cast<std::int64_t>(static_cast<double>(left) / pace);
    left -= done, now = until;
  }
  return now;
}

// What work of a stream loses of its progress to others at an instant, and until when.
std::pair<double, std::int64_t> Scheduler::loss_at(std::size_t stream, std::int64_t now) const {
  double loss = 0;
  std::int64_t until = INT64_MAX;
  for (std::size_t other = 0; other < kStreams; ++other) {
    const Stream& its = streams_[other];
    if (other == stream || its.busy_until <= now) continue;
    if (!cluster_.compute_is_host && !(on_multiprocessors(stream) && on_multiprocessors(other))) {
      continue;
    }
    until = std::min(until, its.busy_from > now ? its.busy_from : its.busy_until);
    if (its.busy_from > now) continue;
    loss = std::max(
        loss, model_.overlap_loss(static_cast<StreamId>(stream), static_cast<StreamId>(other)));
  }
  return {loss, until};
}

void Scheduler::hold(std::int64_t from, std::int64_t until) {
  if (until > from) held_.push_back({from, until});
}

void Scheduler::record(const Issued& issued) {
  const Stream& stream = streams_[issued.stream];
  recorded_[issued.event->id] = {stream.ready, stream.cause};
}

bool Scheduler::wait(const Issued& issued) {
  const auto id = static_cast<std::size_t>(issued.event->id);
  if (id >= recorded_.size()) return true;  // recorded before the trace begins: complete
  if (late_.ignores(*issued.event)) return true;
  if (recorded_[id].is_pending) return false;
  Stream& stream = streams_[issued.stream];
  if (recorded_[id].time > stream.ready) {
    stream.ready = recorded_[id].time;
    stream.busy_from = stream.ready;
    stream.cause = recorded_[id].cause;
  }
  if (cluster_.compute_is_host && issued.event->stream == kCompute) {
    host_waits_for(stream);
    hand_over(issued.index);
  }
  return true;
}

// The thread of one stream to that of another, at the wait.
void Scheduler::hand_over(std::size_t wait) {
  host_ += at_pace(pace_of(wait), model_.wait_picoseconds());
  sync_inline_compute();
}

void Scheduler::host_waits_for(const Stream& stream) {
  if (stream.ready < host_) return;
  host_ = stream.ready;
  host_cause_ = stream.cause;
}

// The host thread is the compute stream: what delays one delays the other.
void Scheduler::sync_inline_compute() {
  Stream& compute = streams_[kCompute];
  if (!cluster_.compute_is_host || compute.ready >= host_) return;
  compute.ready = compute.busy_from = host_;
  compute.cause = host_cause_;
}

}  // namespace zl::sim
