#include "core/threads/thread_group.h"

#include <algorithm>
#include <exception>

#include "core/threads/call_text.h"

namespace zl {
ThreadGroup::ThreadGroup(int ranks, std::chrono::milliseconds timeout)
    : ranks_(ranks), timeout_(timeout) {
  for (auto& channel : channels_) channel = std::make_unique<Channel>(ranks);
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
    std::lock_guard lock(mutex_);
    fail(difference, false);
  }
  throw Error(ErrorCode::failed, difference);
}

void ThreadGroup::enter(Channel& channel, int rank, const Call& call) {
  Slot& slot = channel.slots[static_cast<std::size_t>(rank)];
  slot.call = &call;
  ++slot.posted;
  const auto round = channel.entry.arrive();
  if (!round) throw_failure(rank, call);
  auto outcome = channel.entry.wait(*round, timeout_);
  if (outcome == Barrier::Outcome::timed_out) time_out(channel, *round);
  if (!channel.entry.passed(*round)) throw_failure(rank, call);
}

void ThreadGroup::time_out(Channel& channel, Barrier::Round round) {
  std::lock_guard lock(mutex_);
  if (failure_ || !channel.entry.close_at(round)) return;
  for (auto& other : channels_) other->entry.close();
  fail(missing_ranks(), false);
}

void ThreadGroup::throw_failure(int rank, const Call& call) {
  std::lock_guard lock(mutex_);
  if (!failure_->rank_left) throw Error(ErrorCode::failed, failure_->message);
  throw RankLeft("rank " + std::to_string(rank) + " waits in " + describe(call) + ", but " +
                 failure_->message);
}

void ThreadGroup::leave(int rank, const std::string& why) {
  std::lock_guard lock(mutex_);
  fail("rank " + std::to_string(rank) + " has left: " + why, true);
}

void ThreadGroup::fail(const std::string& message, bool rank_left) {
  if (failure_) return;
  failure_ = std::make_unique<Failure>(Failure{message, rank_left});
  for (auto& channel : channels_) channel->entry.close();
}

void ThreadGroup::reset() {
  failure_.reset();
  for (auto& channel : channels_) {
    channel->entry.reset();
    channel->exit.reset();
    for (Slot& slot : channel->slots) slot.posted = 0;
  }
}

std::string ThreadGroup::mismatch(const Channel& channel, StreamId stream) const {
  const Call& first = channel.call(0);
  for (int rank = 1; rank < ranks_; ++rank) {
    const Call& other = channel.call(rank);
    if (same(first, other)) continue;
    return "collective mismatch at #" + std::to_string(channel.exit.current() + 1) +
           " of the stream '" + name_of(stream) + "': rank 0 calls " + describe(first) + ", rank " +
           std::to_string(rank) + " calls " + describe(other);
  }
  return {};
}

// Called when every entry is closed, so rounds stand still and the posted calls of the current
// rounds stay: their ranks need mutex_ to leave.
std::string ThreadGroup::missing_ranks() const {
  std::string waiting;
  std::vector<bool> seen(static_cast<std::size_t>(ranks_));
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    const Channel& channel = *channels_[stream];
    const std::uint64_t number = channel.entry.current() + 1;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (channel.slots[static_cast<std::size_t>(rank)].posted != number) continue;
      seen[static_cast<std::size_t>(rank)] = true;
      waiting += (waiting.empty() ? "rank " : "; rank ") + std::to_string(rank) + " waits at #" +
                 std::to_string(number) + " of the stream '" +
                 name_of(static_cast<StreamId>(stream)) + "' in " + describe(channel.call(rank));
    }
  }
  std::string absent;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!seen[static_cast<std::size_t>(rank)]) {
      absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  return "collective timed out after " + std::to_string(timeout_.count()) + " ms: " + waiting +
         (absent.empty() ? "" : "; not there: rank " + absent);
}

}  // namespace zl
