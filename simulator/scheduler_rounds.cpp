// What a scheduler does about rounds that a trace holds once and that came often. Where one class
// stands for all ranks, time goes on as if each took as long as the one that it has laid out. Where
// several wait for each other, they are laid out until all classes repeat themselves.
#include <algorithm>

#include "core/base/error.h"
#include "simulator/scheduler.h"

namespace zl::sim {

// An event lasts at most as long (see CostModel), so what is within the range cannot overflow.
void Scheduler::require_in_range(std::int64_t time) {
  if (time <= kLongestPicoseconds) return;
  throw Error(ErrorCode::invalid,
              "cluster: the simulated steps take more than " +
                  std::to_string(kLongestPicoseconds / 1'000'000'000'000) +
                  " s, beyond the range of picoseconds; raise the bandwidth of the links "
                  "(--link-bandwidth), or the device's rates");
}

bool Scheduler::at_round_edge() const {
  if (round_ == trace_.rounds().size()) return false;
  const Round& round = trace_.rounds()[round_];
  return round.count > 1 && (next_ == round.first || next_ == round.last);
}

void Scheduler::pass_round_ends() {
  const std::vector<Round>& rounds = trace_.rounds();
  for (; round_ < rounds.size() && rounds[round_].last <= next_; ++round_) {
    if (rounds[round_].count == 1) continue;
    if (steady_ == nullptr) {
      repeat_round(rounds[round_]);
    } else if (lay_out_again(rounds[round_])) {
      return;
    }
  }
}

void Scheduler::pass_round_begin() {
  const std::vector<Round>& rounds = trace_.rounds();
  if (round_ < rounds.size() && rounds[round_].first == next_ && !again_) round_begin_ = now();
}

std::size_t Scheduler::first_in_a_row() const {
  std::size_t first = round_;
  while (first > 0 && trace_.rounds()[first - 1].last == trace_.rounds()[first].first) --first;
  return trace_.rounds()[first].first;
}

Scheduler::Instant Scheduler::now() const {
  Instant now{.host = host_, .doubt = steps_.back().doubt};
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    now.ready[i] = streams_[i].ready;
    now.busy_from[i] = streams_[i].busy_from;
    now.busy_until[i] = streams_[i].busy_until;
  }
  return now;
}

// Each stream goes on at its own pace: where one runs ahead of another, its lead grows.
void Scheduler::repeat_round(const Round& round) {
  const Instant begin = round_begin_, end = now();
  const std::int64_t more = round.count - 1;
  const auto later = [&](std::int64_t from, std::int64_t to) {
    if (to - from > kLongestPicoseconds / more) require_in_range(kLongestPicoseconds + 1);
    return more * (to - from);
  };
  host_ += later(begin.host, end.host);
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const std::int64_t delay = later(begin.ready[i], end.ready[i]);
    for (std::int64_t Stream::*time : {&Stream::ready, &Stream::busy_from, &Stream::busy_until}) {
      streams_[i].*time += delay;
    }
    require_in_range(streams_[i].ready);
  }
  // A record of a round before stands for that of a later one, too.
  for (std::size_t i = first_in_a_row(); i < round.last; ++i) {
    const TraceEvent& event = trace_.events()[i];
    if (event.type != EventType::record) continue;
    recorded_[event.id].time += later(begin.ready[event.stream], end.ready[event.stream]);
  }
  auto& doubt = steps_.back().doubt;
  for (std::size_t i = 0; i < kCostClasses; ++i) {
    doubt[i] += static_cast<double>(more) * (end.doubt[i] - begin.doubt[i]);
  }
}

EventTime& Scheduler::time_of(std::size_t event) {
  if (!again_) return timeline_.events[event];
  std::vector<EventTime>& times = round_times_.back().times;
  return times[times.size() - (trace_.rounds()[round_].last - event)];
}

double Scheduler::pace_of(std::size_t event) const {
  if (paces_.first.empty()) return 1;
  if (!again_) return paces_.first[event];
  const Round& round = trace_.rounds()[round_];
  const std::vector<double>& known = paces_.again[round_times_.size() - 1];
  if (known.empty()) return paces_.first[event];
  const std::size_t laid_out = std::min(round_times_.back().times.size(), known.size());
  return known[laid_out - (round.last - event)];
}

Price Scheduler::price_of(const Issued& issued) {
  Price price = again_ ? price_again(issued) : model_.price(*issued.event);
  if (uses_cores(*issued.event)) {
    price.picoseconds = at_pace(pace_of(issued.index), price.picoseconds);
  }
  return price;
}

Price Scheduler::price_again(const Issued& issued) {
  std::optional<Price>& known = round_prices_[issued.index - trace_.rounds()[round_].first];
  if (!known) known = model_.price(*issued.event);
  return *known;
}

// How much later this round ended than the one before it, if all of it did.
std::optional<std::int64_t> Scheduler::shift() const {
  const Instant& before = round_begin_;
  const Instant after = now();
  std::int64_t period = 0;
  std::array<bool, kStreamsWithMessages> works{};
  std::int64_t first = INT64_MAX, first_before = INT64_MAX;  // that a stream is ready
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    works[i] = after.ready[i] != before.ready[i];
    if (!works[i]) continue;
    period = after.ready[i] - before.ready[i];
    first = std::min(first, after.ready[i]);
    first_before = std::min(first_before, before.ready[i]);
  }
  const auto is_shifted = [&](std::int64_t to, std::int64_t from) {
    return std::max(to, first) - std::max(from, first_before) == period;
  };
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (works[i] && (after.ready[i] - before.ready[i] != period ||
                     !is_shifted(after.busy_from[i], before.busy_from[i]) ||
                     !is_shifted(after.busy_until[i], before.busy_until[i]))) {
      return std::nullopt;
    }
  }
  const std::int64_t host = after.host - before.host;
  if (host > period || (host < period && host_bound_)) return std::nullopt;
  return period;
}

void Scheduler::begin_repeats(const Round& round) {
  again_ = true;
  round_times_.push_back({.round = round_, .times = {}});
  round_prices_.assign(round.last - round.first, std::nullopt);
  records_.clear();
  const std::size_t length = round.last - round.first, first = first_in_a_row();
  for (std::size_t begin = round.first;; begin -= length) {
    std::vector<std::int64_t> ids;
    for (std::size_t i = begin; i < begin + length; ++i) {
      const TraceEvent &own = trace_.events()[i], &like = trace_.events()[i - begin + round.first];
      if (own.type != like.type) ids.push_back(-1);
      if (own.type == EventType::record && like.type == own.type) ids.push_back(own.id);
    }
    if (std::ranges::find(ids, -1) != ids.end()) break;
    records_.push_back(std::move(ids));
    if (begin < first + length) break;
  }
  steady_->begin(self_, round.count - 1);
}

// What was recorded in a round is waited for in later ones by the id that the round before has.
void Scheduler::pass_on_records() {
  for (std::size_t round = records_.size(); round-- > 1;) {
    for (std::size_t i = 0; i < records_[round].size(); ++i) {
      recorded_[records_[round][i]] = recorded_[records_[round - 1][i]];
    }
  }
}

// At the end of a round: whether it is to be laid out once more.
bool Scheduler::lay_out_again(const Round& round) {
  if (!again_) begin_repeats(round);
  RoundTimes& times = round_times_.back();
  steady_->end_round(self_, shift());
  const SteadyRounds::LeftOut out =
      steady_->leave_out(self_, [this] { return meetings_.most_under_way(); });
  if (out.rounds > 0) {
    ZL_CHECK(times.left_out == 0, "rounds are left out once");
    times.left_out = out.rounds;
    times.period = out.period;
    if (out.period > kLongestPicoseconds / out.rounds) require_in_range(kLongestPicoseconds + 1);
    require_in_range(host_ + out.rounds * out.period);
    auto& doubt = steps_.back().doubt;
    for (std::size_t i = 0; i < kCostClasses; ++i) {
      doubt[i] += static_cast<double>(out.rounds) * (doubt[i] - round_begin_.doubt[i]);
    }
  }
  again_ = steady_->next(self_);
  if (!again_) return false;
  pass_on_records();
  times.times.resize(times.times.size() + (round.last - round.first));
  next_ = round.first;
  round_begin_ = now();
  host_bound_ = false;
  for (Stream& stream : streams_) stream.exchange = SIZE_MAX;
  return true;
}

}  // namespace zl::sim
