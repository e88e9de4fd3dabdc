// One rank's door to the collectives and messages of a ThreadGroup.
// Ownership: shares the group with its other ranks and with what is under way, refers to the rank's
// device. Threads: as in core/device/communicator.h.
#pragma once

#include <memory>
#include <utility>

#include "backends/cpu/device.h"
#include "backends/cpu/traffic.h"
#include "core/threads/thread_group.h"

namespace zl::cpu {

class ThreadCommunicator final : public Communicator {
 public:
  // link_bandwidth: as WorldOptions.
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, Device& device,
                     double link_bandwidth,
                     std::shared_ptr<Traffic> moved = std::make_shared<Traffic>())
      : group_(std::move(group)),
        rank_(rank),
        device_(device),
        link_bandwidth_(link_bandwidth),
        moved_(std::move(moved)) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->ranks(); }
  std::string link() const override { return "threads"; }
  // Error{failed} at once when a segment's counts or types do not fit the collective.
  void run(StreamId stream, const Collective& collective, Timing* timing) override;
  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override;
  std::unique_ptr<Communicator> split(int color, int key) override;

  // Bytes that this rank has read from or written to tensors of other ranks, in the groups that
  // were split from this one too. Summed over the ranks they are the ledgers' wire bytes, less what
  // that formula rounds up where a count does not divide by the ranks. One rank's may differ: an
  // all-reduce is cut at cache lines.
  const Traffic& moved() const { return *moved_; }

 private:
  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  Device& device_;
  double link_bandwidth_;
  std::shared_ptr<Traffic> moved_;  // shared with what is under way and with split groups
};

}  // namespace zl::cpu
