// One group of processes as one of its ranks sees it: MPI carries the bytes, reductions add in rank
// order with the thread ranks' code, so that both give the same bits.
// Ownership: refers to the run's notices; shares the group; keeps room for the other ranks' parts
// of the largest reduction of each stream, outside the ledger. Threads: each stream's calls come
// from that stream's thread.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/traffic.h"
#include "backends/mpi/notices.h"
#include "core/threads/thread_group.h"

namespace zl::mpi {

class Transfer;

// Bytes that a rank has handed to MPI.
struct Sent {
  cpu::Traffic payload, headers;
};

class ProcessGroup {
 public:
  // timeout: how long a rank waits for others to join a call, or for bytes of which none arrives.
  // link_bandwidth: as WorldOptions.
  ProcessGroup(std::shared_ptr<const Group> group, Notices& notices,
               std::chrono::milliseconds timeout, double link_bandwidth,
               std::shared_ptr<Sent> sent = std::make_shared<Sent>())
      : group_(std::move(group)),
        notices_(notices),
        timeout_(timeout),
        link_bandwidth_(link_bandwidth),
        sent_(std::move(sent)) {}

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }

  // Throw Error{failed} when calls differ, TimedOut when a rank or its bytes do not come in time,
  // RankLeft when one has left.
  void run(StreamId stream, const Call& call);
  void exchange(StreamId stream, const std::vector<Message>& messages);
  std::shared_ptr<ProcessGroup> split(int color, int key);

  // What this rank has handed to MPI, here and in the groups that were split from this one.
  // Payload: of all ranks together the ledger's wire bytes but for what the ring's last part is
  // rounded up by. Before it, in no book, each collective sends every other rank a header of
  // kHeaderBytes that says what is called, and the two sides of a message each other.
  static constexpr std::int64_t kHeaderBytes = 256;
  const cpu::Traffic& payload() const { return sent_->payload; }
  const cpu::Traffic& headers() const { return sent_->headers; }

 private:
  // Something under way, for wait().
  struct Wait {
    std::string what;                           // "in all_reduce of ..."
    std::function<bool()> done;                 // also makes it move
    std::function<std::vector<int>()> missing;  // ranks that it needs
    std::function<std::int64_t()> moved;        // grows while it does
    std::function<std::string()> overdue;       // what is said when it has not for too long
  };

  // Returns when all ranks have come with the same call.
  void meet(StreamId stream, const Call& call);
  void wait(const Wait& wait);
  // For the data of a call that all have joined.
  void wait(Requests& requests, StreamId stream, const Call& call);
  void move(StreamId stream, const Call& call);
  void all_reduce(StreamId stream, const Call& call);
  void reduce_scatter(StreamId stream, const Call& call);
  // Of the stream's call, from 1.
  std::int64_t& number(StreamId stream) { return calls_[static_cast<std::size_t>(stream)]; }
  // "collective timed out after 300 ms: rank 0 waits at #5 of the stream 'compute' in ...".
  std::string late(StreamId stream, const Call& call);
  std::string late(const std::vector<std::unique_ptr<Transfer>>& transfers) const;
  std::string timed_out(const std::string& noun) const;
  // "; not there: rank 1, 2", nothing for no ranks; of the group's ranks.
  std::string say(const std::string& what, const std::vector<int>& ranks) const;
  std::vector<int> names(std::vector<int> ranks) const;
  int name(int rank) const { return group_->world_rank(rank); }

  std::shared_ptr<const Group> group_;
  Notices& notices_;
  std::chrono::milliseconds timeout_;
  double link_bandwidth_;
  std::shared_ptr<Sent> sent_;
  // Each touched by its stream's thread only.
  std::array<std::int64_t, kStreams> calls_{};
  std::array<std::vector<std::byte>, kStreams> scratch_;
  // Messages so far, by peer: received, sent.
  std::array<std::map<int, std::array<std::int64_t, 2>>, kStreams> messages_;
};

}  // namespace zl::mpi
