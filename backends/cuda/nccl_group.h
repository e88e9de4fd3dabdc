// The ranks of this process (all, or one) in a run with NCCL: their communicators, and a watchdog
// that ends everybody's calls when one of them does not end. Communicators are non-blocking, so
// that a rank that waits for others can be released: by a timeout, or by aborting its communicators
// when another rank leaves. A call of NCCL's that does not return ends the process.
// Ownership: owns the communicators, split ones until their rank's first is closed. Threads: any.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/event_ring.h"
#include "backends/cuda/nccl_library.h"
#include "backends/cuda/rank_group.h"

namespace zl::cuda {

class NcclGroup final : public RankGroup {
 public:
  using Clock = std::chrono::steady_clock;

  // A call under way, for the watchdog.
  struct UnderWay {
    std::string what;              // "collective #2, all_reduce of ..."
    EventRing::Event begun, done;  // done: null until it is enqueued
    // When the watchdog saw that its turn had come: work before it may take any time.
    std::optional<Clock::time_point> since;
  };
  // One rank in one group.
  struct Member {
    ncclComm_t communicator = nullptr;
    int rank = 0, ranks = 0;
    EventRing events;
    std::deque<UnderWay> under_way;  // oldest first
    std::int64_t calls = 0;
  };

  NcclGroup(int ranks, std::chrono::milliseconds timeout);
  ~NcclGroup() override;

  std::unique_ptr<Communicator> join(Device& device, int rank) override;
  void leave(int rank, const std::string& why) override;
  void finish(int rank) override;

  // For the communicators; rank: of the world.
  using Enqueue = std::function<void(ncclComm_t communicator)>;
  // noun: "collective"; what: "all_reduce of ...".
  void call(int rank, Member& member, const std::string& noun, const std::string& what,
            Stream stream, const Enqueue& enqueue);
  Member& split(int rank, Member& parent, int color, int key);
  // Ends all of the rank's groups. has_failed: what is under way may wait for ranks that never
  // come.
  void close(int rank, bool has_failed);

 private:
  struct Rank {
    std::mutex mutex;            // guards all below: communicators may be aborted by another thread
    int ordinal = 0;             // of its GPU
    std::deque<Member> members;  // the world's is the first
  };

  Rank& of(int rank) { return *ranks_[rank]; }
  void abort(int rank);  // its mutex is held
  void settle(int rank, Member& member, const std::string& what);
  void drain(std::unique_lock<std::mutex>& lock, int rank, Member& member);
  void fail(const std::string& reason);
  bool has_failed();
  [[noreturn]] void throw_failure(int rank, const std::string& does);
  void watch(const std::stop_token& stop);
  std::optional<std::string> look(Rank& rank) const;
  std::optional<std::string> look(Member& member) const;

  std::chrono::milliseconds timeout_;
  ncclUniqueId id_{};
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::mutex mutex_;  // guards failure_
  std::optional<std::string> failure_;
  std::jthread watchdog_;
};

}  // namespace zl::cuda
