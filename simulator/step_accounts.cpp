#include "simulator/step_accounts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "core/base/collective_kind.h"
#include "core/device/device.h"
#include "simulator/busy.h"
#include "simulator/event_account.h"
#include "simulator/late_reductions.h"

namespace zl::sim {
namespace {

constexpr Account kParts[] = {&StepPrice::compute,        &StepPrice::exposed_communication,
                              &StepPrice::exposed_tensor, &StepPrice::exposed_pipeline,
                              &StepPrice::optimizer,      &StepPrice::offload_stall,
                              &StepPrice::bubble,         &StepPrice::host};

class StepAccounts {
 public:
  StepAccounts(const Trace& trace, const std::vector<EventTime>& times,
               const std::vector<EventTime>& held, const KnownErrors& errors,
               std::span<const RoundTimes> laid_out)
      : trace_(trace), times_(times), errors_(errors), laid_out_(laid_out) {
    for (const EventTime& time : held) busy(&StepPrice::bubble).add(time);
    std::size_t index = 0;
    bool may_defer = false;
    for (const TraceEvent& event : trace.events()) {
      add(event, times[index++]);
      may_defer |= may_be_late(event);
    }
    if (may_defer) has_turn_later_ = late_reductions(trace, times);
    for (std::size_t i = 0; i < trace.rounds().size(); ++i) {
      if (trace.rounds()[i].count > 1 && times_of(i) == nullptr) add_repeats(trace.rounds()[i]);
    }
    for (const RoundTimes& round : laid_out_) add_repeats(round);
    for (Cause& cause : causes_) cause.busy.sort();
  }

  StepPrice account(const StepSpan& span) {
    step_ = {.step = span.step, .duration = span.end - span.begin};
    covered_ = span.begin;
    hidden_or_not_ = {};
    double least = 0;  // seconds
    auto event = trace_.events().begin() + static_cast<std::ptrdiff_t>(span.first);
    EventCounts counts(trace_);
    for (std::size_t i = span.first; i < span.last; ++i, ++event) {
      pass_round_edges(i);
      if (!takes_time(*event) || is_deferred(i)) continue;
      add_deferred(*event, times_[i].start);
      const std::int64_t count = counts.of(i);
      least += static_cast<double>(count) * least_seconds(*event);
      const bool is_laid_out = count > 1 && times_of(round_) != nullptr;
      add_work(*event, times_[i], is_laid_out ? 1 : count);
    }
    pass_round_edges(span.last);
    fill_until(span.end);
    add_left_out();
    step_.least = static_cast<std::int64_t>(std::min(least * 1e12, 0x1p62));
    step_.spread = errors_.step > 0 ? std::hypot(errors_.step,
                                                 spread_of_moves(span.doubt, hidden_or_not_.moving))
                                    : spread(span.doubt, hidden_or_not_.communicating);
    return step_;
  }

 private:
  // Reductions that run after what follows them in the trace: their turn comes with the update.
  bool is_deferred(std::size_t index) {
    if (!has_turn_later_.contains(index)) return false;
    deferred_.push_back(index);
    return true;
  }

  void add_deferred(const TraceEvent& next, std::int64_t start) {
    if (deferred_.empty() || !is_on(StreamId::compute, next)) return;
    if (start < times_[deferred_.front()].start) return;
    for (const std::size_t i : std::exchange(deferred_, {})) {
      add_work(trace_.events()[i], times_[i], 1);
    }
  }

  void add(const TraceEvent& event, EventTime time) {
    if (!takes_time(event) || is_on(StreamId::compute, event)) return;
    if (!is_on(StreamId::communication, event)) busy(&StepPrice::offload_stall).add(time);
    if (is_on(StreamId::communication, event) && communicates(event)) {
      busy(account_of_axis(event)).add(time);
    }
  }

  // So often; to the step's parts it adds once.
  void add_work(const TraceEvent& event, EventTime time, std::int64_t count) {
    const std::int64_t duration = count * (time.end - time.start);
    if (is_on(StreamId::compute, event)) {
      add_compute(time, account_of(event));
    } else if (!is_on(StreamId::communication, event)) {
      hidden_or_not_.moving += event.type == EventType::op ? 0 : duration;
    } else if (communicates(event)) {
      hidden_or_not_.communicating += duration;
    }
  }

  const RoundTimes* times_of(std::size_t round) const {
    const auto found = std::ranges::find(laid_out_, round, &RoundTimes::round);
    return found == laid_out_.end() ? nullptr : &*found;
  }

  void add_repeats(const RoundTimes& round) {
    const std::size_t first = trace_.rounds()[round.round].first, count = length_of(round);
    for (std::size_t i = 0; i < round.times.size(); ++i) {
      add(trace_.events()[first + i % count], round.times[i]);
    }
  }

  std::size_t length_of(const RoundTimes& round) const {
    return trace_.rounds()[round.round].last - trace_.rounds()[round.round].first;
  }

  // A stream that falls behind in a round is busy for as long as the round's repeats take it.
  void add_repeats(const Round& round) {
    std::array<const TraceEvent*, kStreams> last{};
    std::array<EventTime, kStreams> busy{};  // from the end of the round's last event
    for (std::size_t i = round.first; i < round.last; ++i) {
      const TraceEvent& event = trace_.events()[i];
      if (!takes_time(event)) continue;
      EventTime& time = busy[event.stream];
      time.start = std::max(time.start, times_[i].end);
      time.end += (round.count - 1) * (times_[i].end - times_[i].start);
      last[event.stream] = &event;
    }
    const std::int64_t computed = busy[static_cast<std::size_t>(StreamId::compute)].start;
    for (std::size_t i = 0; i < kStreams; ++i) {
      const std::int64_t start = std::max(busy[i].start, computed);
      if (last[i] != nullptr) add(*last[i], {start, start + busy[i].end});
    }
  }

  // What the compute stream's time went to in a round, for each time that it came.
  void pass_round_edges(std::size_t event) {
    const std::vector<Round>& rounds = trace_.rounds();
    for (; round_ < rounds.size() && rounds[round_].last <= event; ++round_) {
      if (rounds[round_].count == 1) continue;
      if (const RoundTimes* times = times_of(round_)) {
        repeat_round(*times);
      } else {
        repeat_round(rounds[round_].count - 1);
      }
    }
    if (round_ == rounds.size() || rounds[round_].first != event) return;
    before_round_ = step_;
    round_begin_ = covered_;
  }

  void repeat_round(std::int64_t times) {
    for (const Account account : kParts) {
      step_.*account += times * (step_.*account - before_round_.*account);
    }
    covered_ += times * (covered_ - round_begin_);
  }

  // The times that were laid out; what those like the last of them add is kept for the step's end.
  void repeat_round(const RoundTimes& round) {
    const std::size_t first = trace_.rounds()[round.round].first, count = length_of(round);
    for (std::size_t i = 0; i < round.times.size(); ++i) {
      const bool like_the_last = i + count >= round.times.size();
      if (i % count == 0) before_round_ = step_;
      const TraceEvent& event = trace_.events()[first + i % count];
      if (takes_time(event))
        add_work(event, round.times[i], like_the_last ? 1 + round.left_out : 1);
    }
    left_out_.duration += round.left_out * round.period;
    for (const Account account : kParts) {
      left_out_.*account += round.left_out * (step_.*account - before_round_.*account);
    }
  }

  void add_left_out() {
    for (const Account account : kParts) step_.*account += left_out_.*account;
    step_.duration += left_out_.duration;
    left_out_ = {};
  }

  void add_compute(EventTime time, Account account) {
    fill_until(time.start);
    // A step before may have been closed later than this work starts.
    const std::int64_t from = std::max(time.start, covered_);
    if (time.end <= from) return;
    spend(time.end - from, account);
    covered_ = time.end;
  }

  void fill_until(std::int64_t time) {
    while (covered_ < time) {
      Account account = &StepPrice::host;
      std::int64_t until = time;
      for (Cause& cause : causes_) {
        const auto [change, works] = cause.busy.next(covered_);
        until = std::min(until, change);
        if (works) account = cause.account;
        if (works) break;
      }
      spend(until - covered_, account);
      covered_ = until;
    }
  }

  // What goes along an axis of the mesh is exposed communication too.
  void spend(std::int64_t time, Account account) {
    step_.*account += time;
    if (account == &StepPrice::exposed_tensor || account == &StepPrice::exposed_pipeline) {
      step_.exposed_communication += time;
    }
  }

  Busy& busy(Account account) { return std::ranges::find(causes_, account, &Cause::account)->busy; }

  double least_seconds(const TraceEvent& event) const {
    if (event.type != EventType::op || !is_on(StreamId::compute, event)) return 0;
    const double peak = errors_.peaks[static_cast<std::size_t>(event.dtype)];
    return peak > 0 ? event.flops / peak : 0;
  }

  // What is hidden does not move the step's end.
  double spread_of_moves(const std::array<double, kCostClasses>& doubt, std::int64_t moving) const {
    if (moving == 0 || step_.duration == 0) return 0;
    const double exposed = static_cast<double>(step_.offload_stall) / static_cast<double>(moving);
    return doubt[static_cast<std::size_t>(CostClass::copy)] * std::min(1.0, exposed) /
           static_cast<double>(step_.duration);
  }

  double spread(std::array<double, kCostClasses> doubt, std::int64_t communicating) const {
    if (step_.duration == 0) return 0;
    // Hidden communication does not move the step's end.
    const double exposed = communicating == 0 ? 1.0
                                              : static_cast<double>(step_.exposed_communication) /
                                                    static_cast<double>(communicating);
    doubt[static_cast<std::size_t>(CostClass::collective)] *= std::min(1.0, exposed);
    doubt[static_cast<std::size_t>(CostClass::host)] +=
        static_cast<double>(step_.host) * errors_.host;
    double sum = 0;
    for (const double each : doubt) sum += each * each;
    return std::sqrt(sum) / static_cast<double>(step_.duration);
  }

  const Trace& trace_;
  const std::vector<EventTime>& times_;
  KnownErrors errors_;
  std::span<const RoundTimes> laid_out_;
  std::set<std::size_t> has_turn_later_;  // events, in the trace before what they follow in time
  // What the compute stream waits for, the first that is under way.
  struct Cause {
    Account account;
    Busy busy;
  };
  std::array<Cause, 5> causes_{{{&StepPrice::exposed_communication, {}},
                                {&StepPrice::exposed_tensor, {}},
                                {&StepPrice::exposed_pipeline, {}},
                                {&StepPrice::bubble, {}},
                                {&StepPrice::offload_stall, {}}}};
  std::vector<std::size_t> deferred_;  // whose turn has not come
  StepPrice step_;
  std::int64_t covered_ = 0;  // up to here the compute stream's time is accounted for
  std::size_t round_ = 0;     // that is under way or to come
  StepPrice before_round_, left_out_;
  struct {
    std::int64_t communicating = 0, moving = 0;
  } hidden_or_not_;
  std::int64_t round_begin_ = 0;
};

}  // namespace

std::vector<StepPrice> account_steps(const Trace& trace, const std::vector<EventTime>& times,
                                     const std::vector<EventTime>& held,
                                     const std::vector<StepSpan>& steps, const KnownErrors& errors,
                                     std::span<const RoundTimes> rounds) {
  StepAccounts accounts(trace, times, held, errors, rounds);
  std::vector<StepPrice> prices;
  for (const StepSpan& step : steps) prices.push_back(accounts.account(step));
  return prices;
}

}  // namespace zl::sim
