#include "simulator/timeline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/device/device.h"
#include "simulator/cost/price.h"
#include "simulator/step_accounts.h"

namespace zl::sim {
namespace {

constexpr std::int32_t kNone = -1;
constexpr std::size_t kCompute = static_cast<std::size_t>(StreamId::compute);
constexpr std::size_t kCommunication = static_cast<std::size_t>(StreamId::communication);

struct Stream {
  std::int64_t busy_from = 0;  // start of the unbroken work that ends at `busy_until`
  std::int64_t busy_until = 0;
  std::int64_t ready = 0;      // later than busy_until where a slow link is all that works
  std::int32_t cause = kNone;  // event that set `ready`
};

class Scheduler {
 public:
  Scheduler(const Trace& trace, const ClusterSpec& cluster)
      : trace_(trace), cluster_(cluster), model_(cluster) {
    timeline_.events.resize(trace.events().size());
    before_.resize(trace.events().size(), kNone);
  }

  Timeline run() {
    for (const TraceEvent& event : trace_.events()) {
      enter_step(event.scope);
      schedule(event);
      ++index_;
    }
    if (index_ > 0) close_step();
    timeline_.total = step_begin_;
    trace_back();
    return std::move(timeline_);
  }

 private:
  void enter_step(const Scope& scope) {
    if (index_ == 0) step_ = scope.step;
    if (scope.step <= step_) return;
    close_step();
    step_ = scope.step;
  }

  void close_step() {
    host_ += model_.step_picoseconds();
    sync_inline_compute();
    std::int64_t end = host_;
    for (const Stream& stream : streams_) end = std::max(end, stream.ready);
    const double host_spread = cluster_.spread[static_cast<std::size_t>(CostClass::host)];
    const double error =
        cluster_.calibration ? cluster_.calibration->step_error : cluster_.step_error;
    timeline_.steps.push_back(accounts_.close(step_, step_begin_, end, host_spread, error));
    step_begin_ = end;
  }

  void schedule(const TraceEvent& event) {
    timeline_.events[index_] = {host_, host_};
    switch (event.type) {
      case EventType::op:
      case EventType::collective:
      case EventType::message:
      case EventType::copy:
      case EventType::transfer:
        return work(event);
      case EventType::record:
        return record(event);
      case EventType::wait:
        return wait(event);
      case EventType::synchronize:
        return synchronize(streams_[event.stream]);
      case EventType::allocate:
      case EventType::free:
        return;
    }
  }

  void work(const TraceEvent& event) {
    host_ += model_.issue_picoseconds();
    sync_inline_compute();
    const Price price = model_.price(event);
    Stream& stream = streams_[event.stream];
    const bool late = host_ > stream.ready;
    before_[index_] = late ? host_cause_ : stream.cause;
    const std::int64_t start = std::max(host_, stream.ready);
    if (start > stream.busy_until) stream.busy_from = start;
    stream.busy_until = finish(event.stream, start, price.picoseconds);
    const std::int64_t end = std::max(stream.busy_until, start + price.link_picoseconds);
    stream.ready = end;
    stream.cause = static_cast<std::int32_t>(index_);
    timeline_.events[index_] = {start, end};
    if (cluster_.compute_is_host && event.stream == kCompute) host_waits_for(stream);
    require_in_range(end);
    accounts_.add_price(price);
    accounts_.add(event, {start, end});
  }

  // An event lasts at most as long (see CostModel), so what is within the range cannot overflow.
  static void require_in_range(std::int64_t time) {
    if (time <= kLongestPicoseconds) return;
    throw Error(ErrorCode::invalid,
                "cluster: the simulated steps take more than " +
                    std::to_string(kLongestPicoseconds / 1'000'000'000'000) +
                    " s, beyond the range of picoseconds; raise the bandwidth of the links "
                    "(--link-bandwidth), or the device's rates");
  }

  // Copies and files have engines of their own, the host has processors of its own.
  static bool on_multiprocessors(std::size_t stream) {
    return stream == kCompute || stream == kCommunication;
  }

  // End of `work` picoseconds that start at `start`, slowed while another stream is busy.
  std::int64_t finish(std::size_t stream, std::int64_t start, std::int64_t work) const {
    std::int64_t from = INT64_MAX, until = start;
    for (std::size_t other = 0; other < kStreams; ++other) {
      if (other == stream || streams_[other].busy_until <= start) continue;
      if (!cluster_.compute_is_host && !(on_multiprocessors(stream) && on_multiprocessors(other))) {
        continue;
      }
      from = std::min(from, std::max(start, streams_[other].busy_from));
      until = std::max(until, streams_[other].busy_until);
    }
    if (until == start || start + work <= from) return start + work;
    const double pace = 1 - model_.overlap_loss();
    const std::int64_t left = work - (from - start);
    const auto done = static_cast<std::int64_t>(pace * static_cast<double>(until - from));
    if (left > done) return until + left - done;
    return from + static_cast<std::int64_t>(static_cast<double>(left) / pace);
  }

  void record(const TraceEvent& event) {
    ZL_CHECK(event.id >= 0 && event.id < (std::int64_t{1} << 32), "event ids count up from 0");
    const auto id = static_cast<std::size_t>(event.id);
    if (id >= recorded_.size()) recorded_.resize(std::max(id + 1, 2 * recorded_.size()));
    recorded_[id] = {streams_[event.stream].ready, streams_[event.stream].cause};
  }

  void wait(const TraceEvent& event) {
    const auto id = static_cast<std::size_t>(event.id);
    if (id >= recorded_.size()) return;  // recorded before the trace begins: complete
    Stream& stream = streams_[event.stream];
    if (recorded_[id].time > stream.ready) {
      stream.ready = recorded_[id].time;
      stream.busy_from = stream.ready;
      stream.cause = recorded_[id].cause;
    }
    if (cluster_.compute_is_host && event.stream == kCompute) host_waits_for(stream);
  }

  void synchronize(const Stream& stream) {
    host_waits_for(stream);
    sync_inline_compute();
  }

  void host_waits_for(const Stream& stream) {
    if (stream.ready < host_) return;
    host_ = stream.ready;
    host_cause_ = stream.cause;
  }

  // The host thread is the compute stream: what delays one delays the other.
  void sync_inline_compute() {
    Stream& compute = streams_[kCompute];
    if (!cluster_.compute_is_host || compute.ready >= host_) return;
    compute.ready = compute.busy_from = host_;
    compute.cause = host_cause_;
  }

  void trace_back() {
    const auto last =
        std::max_element(timeline_.events.begin(), timeline_.events.end(),
                         [](const EventTime& a, const EventTime& b) { return a.end < b.end; });
    if (last == timeline_.events.end()) return;
    auto index = static_cast<std::int32_t>(last - timeline_.events.begin());
    for (; index != kNone; index = before_[static_cast<std::size_t>(index)]) {
      timeline_.critical_path.push_back(index);
    }
    std::reverse(timeline_.critical_path.begin(), timeline_.critical_path.end());
  }

  struct Recorded {
    std::int64_t time = 0;
    std::int32_t cause = kNone;
  };

  const Trace& trace_;
  const ClusterSpec& cluster_;
  CostModel model_;
  Timeline timeline_;
  StepAccounts accounts_;
  std::array<Stream, kStreams> streams_;
  std::vector<Recorded> recorded_;    // by event id
  std::vector<std::int32_t> before_;  // by event: what its start waited for
  std::size_t index_ = 0;
  std::int64_t host_ = 0;
  std::int32_t host_cause_ = kNone;
  std::int64_t step_begin_ = 0;
  int step_ = StepPrice::kSetup;
};

}  // namespace

Timeline price(const Trace& trace, const ClusterSpec& cluster) {
  return Scheduler(trace, cluster).run();
}

}  // namespace zl::sim
