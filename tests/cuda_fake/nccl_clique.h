// The ranks of one communicator of the fake NCCL: what each has launched, in its order, and the
// data that moves when all have (of sends and receives: when the two have). Sums are made in rank
// order, in f32 (f64 for f64).
// Ownership: shared by the ranks and by what they have enqueued. Threads: any.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace zl::cuda::fake {

enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

struct Transfer {
  Kind kind;
  const void* source = nullptr;
  void* destination = nullptr;
  std::size_t count = 0;  // as the call counts
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int peer = 0;  // or root
};
// What one rank launches at once: a group's calls.
using Launch = std::vector<Transfer>;

std::size_t size_of(ncclDataType_t type);
// Bytes that a rank of `ranks` reads and writes.
std::pair<std::size_t, std::size_t> spans(const Transfer& call, std::size_t ranks);

class Clique {
 public:
  explicit Clique(int ranks)
      : launched_(static_cast<std::size_t>(ranks)),
        ended_(launched_.size()),
        collectives_(launched_.size()),
        aborted_(launched_.size()),
        offered_(launched_.size()),
        taken_(launched_.size()) {}

  int ranks() const { return static_cast<int>(launched_.size()); }
  // false: the rank or its GPU is there already, which NCCL refuses.
  bool join(int rank, int device);
  bool is_complete();
  // The number of the launch: the rank's launches run one after another, on whatever streams.
  std::int64_t take_number(int rank);
  // On the stream: returns when all ranks have launched that number and the data has moved, or when
  // the rank aborts, or the device has failed.
  void run(int rank, std::int64_t number, const Launch& launch);
  // Whether all that the rank has launched has ended.
  bool is_idle(int rank);
  // A rank's part of a split; then, once all ranks have offered theirs, its new clique and rank.
  void offer_split(int rank, int color, int key);
  std::optional<std::pair<std::shared_ptr<Clique>, int>> take_split(int rank);
  void abort(int rank);
  // ncclSuccess, or why the ranks' launches do not fit together (on a GPU they would hang or mix).
  ncclResult_t error();

 private:
  struct Round {
    std::vector<const Launch*> of_rank;
    int arrived = 0;
    bool is_done = false;
  };
  // A send or a receive that waits for the other.
  struct Post {
    const Transfer* transfer = nullptr;
    bool is_done = false;
  };
  struct Line {  // of one sender and receiver
    std::deque<Post*> sends, receives;
  };
  struct Split {
    std::map<int, std::pair<int, int>> offers;    // by rank: color, key
    std::map<int, std::shared_ptr<Clique>> made;  // by color, when all have offered
  };
  using Lock = std::unique_lock<std::mutex>;

  // Not for ever: the device may fail without a word to this clique. False: over.
  template <class Ready>
  bool wait(Lock& lock, int rank, const Ready& is_ready);
  bool run_collective(Lock& lock, int rank, const Launch& launch);
  bool run_pairs(Lock& lock, int rank, const Launch& launch);
  void meet(Line& line);
  Round& round(std::int64_t number);
  bool is_over(int rank) const { return aborted_[static_cast<std::size_t>(rank)] || failed_; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> joined_, devices_;
  std::vector<std::int64_t> launched_, ended_, collectives_;
  std::vector<bool> aborted_;
  std::deque<Round> rounds_;
  std::map<std::pair<int, int>, Line> lines_;
  std::map<int, Split> splits_;       // by number
  std::vector<int> offered_, taken_;  // splits so far, by rank
  bool failed_ = false;               // launches do not match
};

// Bytes that have gone from a rank to another so far, in all cliques of the process: sends as they
// are, collectives as a ring passes them on, part by part.
std::int64_t exchanged_bytes();

// Moves the data of one launch of every rank, collectives; false: they do not fit together.
bool move_data(const std::vector<const Launch*>& of_rank);

}  // namespace zl::cuda::fake
