// Where the ranks of one process meet: matches their collectives and names what does not match; the
// backend moves the data.
// Ownership: refers to the buffers of a collective while it runs. Threads: run and leave may be
// called from any rank's threads at once; one stream of one rank runs one collective at a time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/threads/barrier.h"
#include "core/threads/failures.h"

namespace zl {

// A collective as one rank posts it for the others to see.
struct Call {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ReduceOp op = ReduceOp::sum;
  Purpose purpose = Purpose::data;
  std::vector<Segment> segments;
};

class ThreadGroup {
 public:
  // timeout: how long a rank sleeps in a collective that others do not join.
  ThreadGroup(int ranks, std::chrono::milliseconds timeout);

  int ranks() const { return ranks_; }

  // The call of each rank, by rank; valid while `work` runs.
  using Calls = std::vector<const Call*>;

  // Meets all other ranks on the same stream, runs `work` on every rank, and returns when all have.
  // Throws Error{failed} on every rank when the calls differ or when a rank does not come in time,
  // RankLeft when one has left; what `work` throws.
  void run(int rank, StreamId stream, const Call& call,
           const std::function<void(const Calls&)>& work);
  // Declares that this rank will join no further collective.
  void leave(int rank, const std::string& why);
  // Forgets failures and positions; only while no rank is running.
  void reset();

 private:
  struct Slot {
    std::atomic<std::uint64_t> posted{0};  // how many calls this rank has posted on the channel
    const Call* call = nullptr;
  };
  // One stream of all ranks. Everybody passes `entry` after posting, `exit` when no buffer or call
  // is looked at any more; entry can be closed, exit is always reached by all who passed entry.
  struct Channel {
    explicit Channel(int ranks)
        : entry(ranks), exit(ranks), slots(static_cast<std::size_t>(ranks)) {}
    Barrier entry, exit;
    std::vector<Slot> slots;
    const Call& call(int rank) const { return *slots[static_cast<std::size_t>(rank)].call; }
  };
  struct Failure {
    std::string message;
    bool rank_left = false;
  };

  void enter(Channel& channel, int rank, const Call& call);
  void time_out(Channel& channel, Barrier::Round round);
  [[noreturn]] void throw_failure(int rank, const Call& call);
  void fail(const std::string& message, bool rank_left);  // mutex_ is held
  std::string mismatch(const Channel& channel, StreamId stream) const;
  std::string missing_ranks() const;

  int ranks_;
  std::chrono::milliseconds timeout_;
  std::array<std::unique_ptr<Channel>, kStreams> channels_;
  std::mutex mutex_;  // guards failure_; a rank reads it before its posted call goes away
  std::unique_ptr<Failure> failure_;
};

}  // namespace zl
