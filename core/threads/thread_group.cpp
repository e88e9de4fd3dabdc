#include "core/threads/thread_group.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "core/threads/call_text.h"

namespace zl {
namespace {

std::vector<int> all_ranks(int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string has_left(int rank, const std::string& why) {
  return "rank " + std::to_string(rank) + " has left: " + why;
}

}  // namespace

Call call_of(const Collective& collective) {
  return {.kind = collective.kind,
          .op = collective.op,
          .purpose = collective.purpose,
          .segments = {collective.segments.begin(), collective.segments.end()},
          .scope = collective.scope};
}

ThreadGroup::ThreadGroup(int ranks, std::chrono::milliseconds timeout)
    : ThreadGroup(all_ranks(ranks), timeout, std::make_shared<Family>()) {
  family_->ended.resize(names_.size());
  family_->groups.push_back(this);
}

// A group that is split joins the family's list in take_seat(), where the mutex is held.
ThreadGroup::ThreadGroup(std::vector<int> names, std::chrono::milliseconds timeout,
                         std::shared_ptr<Family> family)
    : names_(std::move(names)), timeout_(timeout), family_(std::move(family)) {
  for (auto& channel : channels_) channel = std::make_unique<Channel>(ranks());
}

ThreadGroup::~ThreadGroup() {
  const std::lock_guard lock(family_->mutex);
  std::erase(family_->groups, this);
}

void ThreadGroup::run(int rank, StreamId stream, const Call& call,
                      const std::function<void(const Calls&)>& work) {
  Channel& channel = *channels_.at(static_cast<std::size_t>(stream));
  enter(channel, rank, call);
  const std::string difference = mismatch(channel, stream);
  std::exception_ptr failure;
  if (difference.empty()) {
    Calls calls;
    for (const Slot& slot : channel.slots) calls.push_back(slot.call);
    try {
      work(calls);
    } catch (...) {
      failure = std::current_exception();  // the others wait at the exit
    }
  }
  channel.exit.arrive_and_wait();
  if (failure) std::rethrow_exception(failure);
  if (difference.empty()) return;
  {
    const std::lock_guard lock(family_->mutex);
    fail(difference, false);
  }
  throw Error(ErrorCode::failed, difference);
}

void ThreadGroup::enter(Channel& channel, int rank, const Call& call) {
  Slot& slot = channel.slots[rank];
  slot.call = &call;
  ++slot.posted;
  const auto round = channel.entry.arrive();
  if (round) {
    const auto outcome = channel.entry.wait(*round, timeout_);
    if (outcome == Barrier::Outcome::timed_out) time_out(channel, *round);
    if (channel.entry.passed(*round)) return;
  }
  const std::lock_guard lock(family_->mutex);
  slot.call = nullptr;
  throw_failure(rank, "in " + describe(call), ended_rank());
}

void ThreadGroup::time_out(Channel& channel, Barrier::Round round) {
  const std::lock_guard lock(family_->mutex);
  if (family_->failure || !channel.entry.close_at(round)) return;
  for (ThreadGroup* group : family_->groups) group->close();
  fail("collective timed out after " + std::to_string(timeout_.count()) + " ms: " + missing_ranks(),
       false);
}

ThreadGroup::Seat ThreadGroup::split(int rank, int color, int key) {
  ZL_CHECK(color >= 0, "the color of a group is 0 or more, not " + std::to_string(color));
  std::array<std::int32_t, 2> mine{color, key};
  const TensorView view{reinterpret_cast<std::byte*>(mine.data()), DType::i32, Shape{2}};
  const Call call{
      CollectiveKind::all_gather, ReduceOp::sum, Purpose::control, {Segment{view, view}}, true};
  Seat seat;
  run(rank, StreamId::compute, call, [&](const Calls& calls) { seat = take_seat(calls, rank); });
  return seat;
}

// The first of a color makes its group, the last one forgets it.
ThreadGroup::Seat ThreadGroup::take_seat(const Calls& calls, int rank) {
  const auto given = [&](int other, int i) {  // 0: color, 1: key
    return calls[other]->segments[0].source.as<std::int32_t>()[i];
  };
  std::vector<int> members;
  for (int other = 0; other < ranks(); ++other) {
    if (given(other, 0) == given(rank, 0)) members.push_back(other);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return given(a, 1) < given(b, 1); });
  const auto seat = std::find(members.begin(), members.end(), rank) - members.begin();
  const std::lock_guard lock(family_->mutex);
  Forming& forming = forming_[given(rank, 0)];
  if (forming.group == nullptr) {
    std::vector<int> names;
    for (const int member : members) names.push_back(name(member));
    forming.group.reset(new ThreadGroup(std::move(names), timeout_, family_));
    forming.missing = static_cast<int>(members.size());
    family_->groups.push_back(forming.group.get());
    if (family_->failure || forming.group->ended_rank() >= 0) forming.group->close();
  }
  const std::shared_ptr<ThreadGroup> group = forming.group;
  if (--forming.missing == 0) forming_.erase(given(rank, 0));
  return {group, static_cast<int>(seat)};
}

void ThreadGroup::leave(int rank, const std::string& why) {
  const std::lock_guard lock(family_->mutex);
  fail(has_left(name(rank), why), true);
}

void ThreadGroup::end(int rank) {
  const std::lock_guard lock(family_->mutex);
  family_->ended[name(rank)] = true;
  for (ThreadGroup* group : family_->groups) {
    if (group->ended_rank() >= 0) group->close();
  }
}

void ThreadGroup::reset() {
  family_->failure.reset();
  family_->ended.assign(names_.size(), false);
  mailbox_ = {};
  forming_.clear();
  for (auto& channel : channels_) {
    channel->entry.reset();
    channel->exit.reset();
    for (Slot& slot : channel->slots) slot.posted = 0;
  }
}

void ThreadGroup::fail(const std::string& message, bool rank_left) {
  if (family_->failure) return;
  family_->failure = Failure{message, rank_left};
  for (ThreadGroup* group : family_->groups) group->close();
}

void ThreadGroup::close() {
  for (auto& channel : channels_) channel->entry.close();
  mail_.notify_all();
}

// The family's failure, else that a rank has ended.
void ThreadGroup::throw_failure(int rank, const std::string& what, int ended) const {
  const auto& failure = family_->failure;
  if (failure && !failure->rank_left) throw Error(ErrorCode::failed, failure->message);
  throw RankLeft("rank " + std::to_string(name(rank)) + " waits " + what + ", but " +
                 (failure ? failure->message : has_left(ended, "its program has ended")));
}

int ThreadGroup::ended_rank() const {
  for (const int each : names_) {
    if (family_->ended[each]) return each;
  }
  return -1;
}

std::string ThreadGroup::mismatch(const Channel& channel, StreamId stream) const {
  const Call& first = channel.call(0);
  for (int rank = 1; rank < ranks(); ++rank) {
    const Call& other = channel.call(rank);
    if (same(first, other)) continue;
    return "collective mismatch at #" + std::to_string(channel.exit.current() + 1) +
           " of the stream '" + name_of(stream) + "': rank " + std::to_string(name(0)) + " calls " +
           describe(first) + ", rank " + std::to_string(name(rank)) + " calls " + describe(other);
  }
  return {};
}

// Called when every entry is closed, so rounds stand still and the posted calls of the current
// rounds stay: their ranks need the mutex to leave.
void ThreadGroup::add_waiting(std::vector<Waiting>& all) const {
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    const Channel& channel = *channels_[stream];
    const std::uint64_t number = channel.entry.current() + 1;
    for (int rank = 0; rank < ranks(); ++rank) {
      const Slot& slot = channel.slots[rank];
      if (slot.posted != number || slot.call == nullptr) continue;
      all.push_back({name(rank), describe_wait(name(rank), static_cast<std::int64_t>(number),
                                               static_cast<StreamId>(stream),
                                               "in " + describe(channel.call(rank)))});
    }
  }
  for (Waiting& each : mailbox_.waiting([this](int rank) { return name(rank); })) {
    all.push_back(std::move(each));
  }
}

// Of all groups; who is not there: of this one.
std::string ThreadGroup::missing_ranks() const {
  std::vector<Waiting> all;
  for (const ThreadGroup* group : family_->groups) group->add_waiting(all);
  std::string waiting, absent;
  for (const Waiting& each : all) waiting += (waiting.empty() ? "" : "; ") + each.text;
  for (const int each : names_) {
    const auto is_it = [each](const Waiting& other) { return other.rank == each; };
    if (std::any_of(all.begin(), all.end(), is_it)) continue;
    absent += (absent.empty() ? "" : ", ") + std::to_string(each);
  }
  return waiting + (absent.empty() ? "" : "; not there: rank " + absent);
}

}  // namespace zl
