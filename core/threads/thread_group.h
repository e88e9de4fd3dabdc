// Where the ranks of one process meet: matches their collectives and messages and names what does
// not match; the backend moves the data. Groups that were split from one another end together.
// Ownership: refers to the buffers of a call while it runs. Threads: all but reset may be called
// from any rank's threads at once; one stream of one rank runs one call at a time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/threads/barrier.h"
#include "core/threads/failures.h"
#include "core/threads/mailbox.h"

namespace zl {

// A collective as one rank posts it for the others to see.
struct Call {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ReduceOp op = ReduceOp::sum;
  Purpose purpose = Purpose::data;
  std::vector<Segment> segments;
  bool splits = false;  // the group: an all_gather of colors and keys
  Scope scope = {};     // for errors only
};

// With its own list of the segments.
Call call_of(const Collective& collective);

class ThreadGroup {
 public:
  // All ranks of a world. timeout: how long a rank sleeps in a call that others do not join.
  ThreadGroup(int ranks, std::chrono::milliseconds timeout);
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int ranks() const { return static_cast<int>(names_.size()); }

  // The call of each rank, by rank; valid while `work` runs.
  using Calls = std::vector<const Call*>;

  // Meets all other ranks on the same stream, runs `work` on every rank, and returns when all have.
  // Throws Error{failed} on every rank when the calls differ or when a rank does not come in time,
  // RankLeft when one has left; what `work` throws.
  void run(int rank, StreamId stream, const Call& call,
           const std::function<void(const Calls&)>& work);

  // Moves one message; called on the receiver's thread.
  using Move = std::function<void(const Message& send, const Message& receive)>;
  // Meets the peer of each message and returns when all are moved, in whatever order they come.
  // Throws as run.
  void exchange(int rank, StreamId stream, std::span<const Message> messages, const Move& move);

  struct Seat {
    std::shared_ptr<ThreadGroup> group;
    int rank = 0;
  };
  // Communicator::split on the stream `compute`; all ranks of a color get the same group.
  Seat split(int rank, int color, int key);

  // Declares that this rank has failed: all calls of the world end, in all of its groups.
  void leave(int rank, const std::string& why);
  // Declares that this rank's program has ended well: calls that need it end.
  void end(int rank);
  // Forgets failures and positions; only on the world's group, while no rank is running.
  void reset();

 private:
  struct Slot {
    std::atomic<std::uint64_t> posted{0};  // how many calls this rank has posted on the channel
    const Call* call = nullptr;            // null: it does not wait any more
  };
  // One stream of all ranks. Everybody passes `entry` after posting, `exit` when no buffer or call
  // is looked at any more; entry can be closed, exit is always reached by all who passed entry.
  struct Channel {
    explicit Channel(int ranks) : entry(ranks), exit(ranks), slots(ranks) {}
    Barrier entry, exit;
    std::vector<Slot> slots;
    const Call& call(int rank) const { return *slots[rank].call; }
  };
  struct Failure {
    std::string message;
    bool rank_left = false;
  };
  // What the groups of a world share. A rank takes the mutex before its posted call goes away.
  struct Family {
    std::mutex mutex;  // guards all below, and every group's mailbox and forming groups
    std::optional<Failure> failure;
    std::vector<bool> ended;  // by rank of the world
    std::vector<ThreadGroup*> groups;
  };
  struct Forming {
    std::shared_ptr<ThreadGroup> group;
    int missing = 0;  // ranks that have not taken it yet
  };
  using Posts = std::vector<Post>;

  ThreadGroup(std::vector<int> names, std::chrono::milliseconds timeout,
              std::shared_ptr<Family> family);

  void enter(Channel& channel, int rank, const Call& call);
  void time_out(Channel& channel, Barrier::Round round);
  Seat take_seat(const Calls& calls, int rank);
  void await(std::unique_lock<std::mutex>& lock, Posts& posts, const Move& move);
  void move_met(std::unique_lock<std::mutex>& lock, Posts& posts, const Move& move);
  void withdraw(std::unique_lock<std::mutex>& lock, Posts& posts);
  std::string mismatch(const Channel& channel, StreamId stream) const;
  int name(int rank) const { return names_[rank]; }

  // The family's mutex is held.
  void fail(const std::string& message, bool rank_left);
  void close();
  [[noreturn]] void throw_failure(int rank, const std::string& what, int ended) const;
  void check(const Posts& posts) const;
  int ended_rank() const;  // of the world; -1: none
  void add_waiting(std::vector<Waiting>& all) const;
  std::string missing_ranks() const;

  std::vector<int> names_;  // the world's rank of each rank
  std::chrono::milliseconds timeout_;
  std::array<std::unique_ptr<Channel>, kStreams> channels_;
  std::shared_ptr<Family> family_;
  Mailbox mailbox_;
  std::condition_variable mail_;    // something of the mailbox has changed, or calls end
  std::map<int, Forming> forming_;  // by color
};

}  // namespace zl
