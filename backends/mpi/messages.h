// Messages among the processes that an MPI launcher started, as the communicator needs them.
// Ownership: a Requests refers to its group. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/mpi/session.h"

namespace zl::mpi {

// Processes that talk among themselves: what goes through one group, or one channel of it, does not
// meet what goes through another.
class Group {
 public:
  // Of all processes.
  static const std::shared_ptr<const Group>& world();
  // Ranks with the same color (0 or more), in the order of their keys. All ranks must call it.
  std::shared_ptr<const Group> split(int color, int key) const;
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  // Its rank among all processes.
  int world_rank(int rank) const { return world_ranks_[rank]; }

 private:
  friend class Requests;
  struct Handle;
  explicit Group(std::unique_ptr<Handle> handle);

  std::unique_ptr<Handle> handle_;
  int rank_ = 0;
  std::vector<int> world_ranks_;
};
inline constexpr int kChannels = 32;

// Every process calls it before a run: what was sent in an earlier one and never taken is not taken
// for a message of this one.
void begin_run();

// Messages under way on one channel of a group; between two processes they arrive in the order of
// their calls. The memory must stay as it is until done() or the end of the object, which takes
// back what has not arrived.
class Requests {
 public:
  // How many bytes may be under way to or from one process, so that those of a slow link arrive one
  // after the other and show that it moves. Objects that share a channel need kAll.
  static constexpr std::int64_t kAll = 0, kWindow = std::int64_t{32} << 20;

  // The group must stay.
  Requests(const Group& group, int channel, std::int64_t window = kAll);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void send(int to, const void* data, std::int64_t bytes);
  void receive(int from, void* data, std::int64_t bytes);
  // Whether all have arrived; also makes them move.
  bool done();
  // Who has not sent, and who has not taken, what they should; once each, in order of rank.
  std::vector<int> missing() const { return peers(true); }
  std::vector<int> not_taken() const { return peers(false); }
  // Grows while messages arrive or leave.
  std::int64_t moved() const { return moved_; }
  std::int64_t sent() const { return sent_; }  // bytes that were handed to MPI for others

 private:
  struct Pending;
  struct Line;
  struct Part;
  void add(int peer, bool receives, void* data, std::int64_t bytes);
  void post(Line& line);
  std::vector<int> peers(bool receives) const;

  const Group& group_;
  int channel_;
  std::int64_t window_, sent_ = 0, moved_ = 0;
  std::unique_ptr<Pending> pending_;
};

}  // namespace zl::mpi
