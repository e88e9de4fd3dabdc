// The communicator of CPU ranks that are processes.
// Ownership: refers to its rank's device; shares its group with what is under way, which refers to
// the run's notices. Threads: as in core/device/communicator.h.
#pragma once

#include <memory>
#include <utility>

#include "backends/cpu/device.h"
#include "backends/mpi/process_group.h"

namespace zl::mpi {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(cpu::Device& device, std::shared_ptr<ProcessGroup> group)
      : device_(device), group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::string link() const override { return "mpi"; }
  void run(StreamId stream, const Collective& collective, Timing* timing) override;
  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override;
  std::unique_ptr<Communicator> split(int color, int key) override;

  // As ProcessGroup's.
  static constexpr std::int64_t kHeaderBytes = ProcessGroup::kHeaderBytes;
  const cpu::Traffic& payload() const { return group_->payload(); }
  const cpu::Traffic& headers() const { return group_->headers(); }

 private:
  cpu::Device& device_;
  std::shared_ptr<ProcessGroup> group_;
};

}  // namespace zl::mpi
