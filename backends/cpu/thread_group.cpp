#include "backends/cpu/thread_group.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/call_text.h"
#include "backends/cpu/reduce.h"

namespace zl::cpu {
namespace {

void copy_bytes(std::byte* destination, const std::byte* source, std::int64_t bytes) {
  if (destination != source && bytes > 0)
    std::memcpy(destination, source, static_cast<std::size_t>(bytes));
}

// The part of `total` elements that a rank works on, cut at cache lines.
struct Share {
  std::int64_t begin, end;
};
Share share_of(std::int64_t total, int rank, int ranks) {
  constexpr std::int64_t kGrain = 64;
  const std::int64_t grains = (total + kGrain - 1) / kGrain;
  return {std::min(total, grains * rank / ranks * kGrain),
          std::min(total, grains * (rank + 1) / ranks * kGrain)};
}

}  // namespace

ThreadGroup::ThreadGroup(int ranks, std::chrono::milliseconds timeout)
    : ranks_(ranks), timeout_(timeout) {
  for (auto& channel : channels_) channel = std::make_unique<Channel>(ranks);
}

void ThreadGroup::run(int rank, StreamId stream, const Call& call) {
  Channel& channel = *channels_.at(static_cast<std::size_t>(stream));
  enter(channel, rank, call);
  const std::string difference = mismatch(channel, stream);
  if (difference.empty()) move_data(channel, rank);
  channel.exit.arrive_and_wait();
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

void ThreadGroup::move_data(const Channel& channel, int rank) const {
  const Call& mine = channel.call(rank);
  const bool copies = mine.kind == CollectiveKind::broadcast || ranks_ == 1;
  if (mine.kind == CollectiveKind::all_reduce && !copies) return all_reduce(channel, rank);
  std::vector<const std::byte*> sources(static_cast<std::size_t>(ranks_));
  for (std::size_t i = 0; i < mine.segments.size(); ++i) {
    const Segment& segment = mine.segments[i];
    std::byte* destination = segment.destination.data;
    const auto source = [&](int from) { return channel.call(from).segments[i].source.data; };
    if (copies) {
      copy_bytes(destination, source(0), segment.source.bytes());
    } else if (mine.kind == CollectiveKind::all_gather) {
      const std::int64_t chunk = segment.source.bytes();
      // Every rank starts elsewhere, so that they do not read one source at the same time.
      for (int step = 0; step < ranks_; ++step) {
        const int from = (rank + step) % ranks_;
        copy_bytes(destination + from * chunk, source(from), chunk);
      }
    } else {
      const std::int64_t chunk = segment.destination.bytes();
      for (int from = 0; from < ranks_; ++from) {
        sources[static_cast<std::size_t>(from)] = source(from) + rank * chunk;
      }
      reduce(segment.source.dtype, mine.op, sources, {&destination, 1},
             segment.destination.count());
    }
  }
}

// Each rank reduces its share of all segments laid end to end and writes it to everyone: nobody
// else reads or writes those elements.
void ThreadGroup::all_reduce(const Channel& channel, int rank) const {
  const Call& mine = channel.call(rank);
  std::int64_t total = 0;
  for (const Segment& segment : mine.segments) total += segment.source.count();
  const Share share = share_of(total, rank, ranks_);
  std::vector<const std::byte*> sources(static_cast<std::size_t>(ranks_));
  std::vector<std::byte*> destinations(static_cast<std::size_t>(ranks_));
  std::int64_t start = 0;
  for (std::size_t i = 0; i < mine.segments.size(); ++i) {
    const TensorView& view = mine.segments[i].source;
    const std::int64_t begin = std::max(share.begin - start, std::int64_t{0});
    const std::int64_t end = std::min(share.end - start, view.count());
    start += view.count();
    if (begin >= end) continue;
    const std::int64_t offset = begin * static_cast<std::int64_t>(size_of(view.dtype));
    for (int from = 0; from < ranks_; ++from) {
      const Segment& theirs = channel.call(from).segments[i];
      sources[static_cast<std::size_t>(from)] = theirs.source.data + offset;
      destinations[static_cast<std::size_t>(from)] = theirs.destination.data + offset;
    }
    reduce(view.dtype, mine.op, sources, destinations, end - begin);
  }
}

}  // namespace zl::cpu
