// What a scheduler does about rounds that a trace holds once and that came often: time goes on as
// if each took as long as the one that it has laid out.
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

void Scheduler::pass_round_edges() {
  const std::vector<Round>& rounds = trace_.rounds();
  for (; round_ < rounds.size() && rounds[round_].last <= next_; ++round_) {
    if (rounds[round_].count > 1) repeat_round(rounds[round_]);
  }
  if (round_ < rounds.size() && rounds[round_].first == next_) round_begin_ = now();
}

std::size_t Scheduler::first_in_a_row() const {
  std::size_t first = round_;
  while (first > 0 && trace_.rounds()[first - 1].last == trace_.rounds()[first].first) --first;
  return trace_.rounds()[first].first;
}

Scheduler::Instant Scheduler::now() const {
  Instant now{.host = host_, .doubt = steps_.back().doubt};
  for (std::size_t i = 0; i < kStreams; ++i) now.ready[i] = streams_[i].ready;
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
  for (std::size_t i = 0; i < kStreams; ++i) {
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

}  // namespace zl::sim
