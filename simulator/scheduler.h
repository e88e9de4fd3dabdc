// Lays out the events of one class of ranks in time, as far as the other classes have come.
// Ownership: refers to the trace, the cluster and the meetings of all classes. Threads: used by one
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/stream.h"
#include "simulator/cost/price.h"
#include "simulator/late_reductions.h"
#include "simulator/meetings.h"
#include "simulator/processor_sharing.h"
#include "simulator/steady_rounds.h"
#include "simulator/step_accounts.h"
#include "simulator/timeline.h"

namespace zl::sim {

class Scheduler {
 public:
  // `self`: index of the class in the meetings. steady: of all classes; null where one stands for
  // all: what comes often is then priced once, else until it is the same in all classes.
  Scheduler(const RankTrace& rank, std::size_t self, const ClusterSpec& cluster, Meetings& meetings,
            SteadyRounds* steady = nullptr, EventPaces paces = {});

  // Runs what can be run up to an event that waits for another class; whether there was anything.
  bool advance();
  // Issues one more event all the same, where no class can advance: a stream that waits for another
  // class holds up what is issued on it later, and the host only where the host waits for it.
  bool issue_next();
  bool done() const {
    return next_ == trace_.events().size() && waiting_.empty() && !at_round_edge();
  }
  // The event that waits for another class, with its place.
  std::string stuck_at() const;
  // After the last event: when it works on cores, and what of each event's price passes by a clock.
  WorkingRanks working() const;
  EventPaces paces(const SharedClock& clock) const;
  // After those.
  Timeline finish();

 private:
  static constexpr std::int32_t kNone = -1;

  struct Stream {
    std::int64_t busy_from = 0;  // start of the unbroken work that ends at `busy_until`
    std::int64_t busy_until = 0;
    std::int64_t ready = 0;      // later than busy_until where a slow link is all that works
    std::int32_t cause = kNone;  // event that set `ready`
    int waiting = 0;             // of `waiting_`
    // The exchange under way: index of its first message, when it could start, and what before.
    std::size_t exchange = SIZE_MAX;
    std::int64_t exchange_start = 0;
    std::int32_t exchange_cause = kNone;
  };
  // Work, a record or a wait that the host has issued.
  struct Issued {
    std::size_t index = 0, step = 0;  // in the trace, in steps_
    const TraceEvent* event = nullptr;
    std::size_t stream = 0;
    std::int64_t time = 0;
    std::int32_t cause = kNone;  // what the host waited for before
    bool arrived = false;        // at a collective of other classes too
  };
  struct Recorded {
    std::int64_t time = 0;
    std::int32_t cause = kNone;
    bool is_pending = false;
  };
  struct Deferred {
    std::size_t index = 0, step = 0;
    Price price;
  };
  // How far all has come, at the begin of a round.
  struct Instant {
    std::int64_t host = 0;
    std::array<std::int64_t, kStreamsWithMessages> ready{}, busy_from{}, busy_until{};
    std::array<double, kCostClasses> doubt{};
  };
  struct Step {
    int step = StepPrice::kSetup;
    std::size_t last = 0;
    std::int64_t host_end = 0;
    std::array<double, kCostClasses> doubt{};
    bool is_updating = false;
  };

  bool retry();
  bool at_round_edge() const;
  void pass_round_ends();
  void pass_round_begin();
  static void require_in_range(std::int64_t time);
  std::size_t first_in_a_row() const;
  Instant now() const;
  void repeat_round(const Round& round);
  void begin_repeats(const Round& round);
  bool lay_out_again(const Round& round);
  std::optional<std::int64_t> shift() const;
  void pass_on_records();
  std::int64_t delay_by_left_out();
  EventTime& time_of(std::size_t event);
  double pace_of(std::size_t event) const;
  Price price_of(const Issued& issued);
  Price price_again(const Issued& issued);
  void begin_exchange(const TraceEvent& event);
  void end_exchange();
  bool reduces_last() const;
  bool has_message_stream() const;
  std::size_t stream_of(const TraceEvent& event) const;
  std::int64_t on_shared_link(std::int64_t start, std::int64_t duration) const;
  bool waits_for_others(const TraceEvent& event) const;
  bool defers(const TraceEvent& event) const;
  std::int64_t end_reductions(const Issued& update, std::int64_t start);
  void add_doubt(std::size_t step, const Price& price);
  bool is_host_held(const TraceEvent& event) const;
  void enter_step(const Scope& scope);
  void close_step();
  void issue(const TraceEvent& event);
  void enqueue(const TraceEvent& event);
  bool joins_exchange(const Issued& issued) const;
  bool run(Issued& issued);
  bool work(Issued& issued);
  bool message(const Issued& issued);
  void record(const Issued& issued);
  bool wait(const Issued& issued);
  void hand_over(std::size_t wait);
  void end_work(const Issued& issued, EventTime time, const Price& price);
  std::int64_t finish_work(std::size_t stream, std::int64_t start, std::int64_t work) const;
  std::pair<double, std::int64_t> loss_at(std::size_t stream, std::int64_t now) const;
  void hold(std::int64_t from, std::int64_t until);
  void host_waits_for(const Stream& stream);
  void sync_inline_compute();
  std::vector<StepSpan> step_spans() const;
  void trace_back();

  const Trace& trace_;
  const ClusterSpec& cluster_;
  Meetings& meetings_;
  std::size_t self_;
  int rank_, ranks_;  // of the class: the one that recorded, how many
  CostModel model_;
  Timeline timeline_;
  std::array<Stream, kStreamsWithMessages> streams_;
  std::deque<Issued> waiting_;        // in the order of issue
  std::vector<Recorded> recorded_;    // by event id
  std::vector<std::int32_t> before_;  // by event: what its start waited for
  std::vector<EventTime> held_;       // when streams waited for other classes
  std::vector<Step> steps_;           // the last one is open
  std::size_t next_ = 0;              // event to issue
  std::size_t round_ = 0;             // that is under way or to come
  Instant round_begin_;
  SteadyRounds* steady_;
  EventPaces paces_;
  bool again_ = false;       // the round under way was laid out before
  bool host_bound_ = false;  // something in it started, or ended, later for the host
  // Ids of the records of the round and of those before it that are like it, latest first.
  std::vector<std::vector<std::int64_t>> records_;
  std::vector<RoundTimes> round_times_;
  std::vector<std::optional<Price>> round_prices_;
  const Stream* exchanges_on_ = nullptr;  // which the host waits for after the exchange
  std::vector<Deferred> deferred_;        // of passes, before the update
  LateReductions late_;
  std::int64_t host_ = 0;
  std::int32_t host_cause_ = kNone;
};

}  // namespace zl::sim
