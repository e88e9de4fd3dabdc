// One rank's door to the collectives of a ThreadGroup.
// Ownership: refers to the group and the rank's device. Threads: as in core/device/communicator.h.
#pragma once

#include "backends/cpu/device.h"
#include "backends/cpu/traffic.h"
#include "core/threads/thread_group.h"

namespace zl::cpu {

class ThreadCommunicator final : public Communicator {
 public:
  // link_bandwidth: as WorldOptions.
  ThreadCommunicator(ThreadGroup& group, int rank, Device& device, double link_bandwidth)
      : group_(group), rank_(rank), device_(device), link_bandwidth_(link_bandwidth) {}

  int rank() const override { return rank_; }
  int size() const override { return group_.ranks(); }
  std::string link() const override { return "threads"; }
  // Error{failed} at once when a segment's counts or types do not fit the collective.
  void run(StreamId stream, const Collective& collective, Timing* timing) override;

  // Bytes that this rank has read from or written to tensors of other ranks. Summed over the ranks
  // they are the ledgers' wire bytes, less what that formula rounds up where a count does not
  // divide by the ranks. One rank's may differ: an all-reduce is cut at cache lines.
  const Traffic& moved() const { return moved_; }

 private:
  ThreadGroup& group_;
  int rank_;
  Device& device_;
  double link_bandwidth_;
  Traffic moved_;
};

}  // namespace zl::cpu
