// Collectives of CPU ranks that are processes: MPI carries the bytes, reductions add in rank order
// with the thread ranks' code, so that both give the same bits.
// Ownership: refers to its rank's device and to the run's notices; keeps room for the other ranks'
// parts of the largest reduction of each stream, outside the ledger. Threads: as in
// core/device/communicator.h.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/traffic.h"
#include "backends/mpi/notices.h"
#include "core/threads/thread_group.h"

namespace zl::mpi {

class MpiCommunicator final : public Communicator {
 public:
  // timeout: how long a rank waits in a collective that others do not join. link_bandwidth: as
  // WorldOptions.
  MpiCommunicator(cpu::Device& device, Notices& notices, std::chrono::milliseconds timeout,
                  double link_bandwidth)
      : device_(device), notices_(notices), timeout_(timeout), link_bandwidth_(link_bandwidth) {}

  int rank() const override { return processes().rank; }
  int size() const override { return processes().count; }
  std::string link() const override { return "mpi"; }
  void run(StreamId stream, const Collective& collective, Timing* timing) override;

  // Bytes that this rank has handed to MPI. Payload, summed over the ranks: as
  // ThreadCommunicator::moved(). Headers are in no book: before each collective a rank tells every
  // other what it calls.
  static constexpr std::int64_t kHeaderBytes = 256;
  const cpu::Traffic& payload() const { return payload_; }
  const cpu::Traffic& headers() const { return headers_; }

 private:
  void run_now(StreamId stream, const Call& call);
  // Returns when all ranks have come with the same call. Throws Error{failed} when calls differ or
  // a rank does not come in time, RankLeft when one has left.
  void meet(StreamId stream, const Call& call);
  // Blocks until the requests are done; `waiting` is called in between.
  void wait(Requests& requests, const Call& call, const std::function<void()>& waiting);
  void move(StreamId stream, const Call& call);
  void all_reduce(StreamId stream, const Call& call);
  void reduce_scatter(StreamId stream, const Call& call);

  cpu::Device& device_;
  Notices& notices_;
  std::chrono::milliseconds timeout_;
  double link_bandwidth_;
  cpu::Traffic payload_, headers_;
  // Each touched by its stream's thread only.
  std::array<std::int64_t, kStreams> calls_{};
  std::array<std::vector<std::byte>, kStreams> scratch_;
};

}  // namespace zl::mpi
