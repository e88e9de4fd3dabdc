// The CPU as a device: the compute stream runs on the rank's own thread, each other stream on a
// thread that starts with its first task.
// Ownership: owns streams; slabs belong to whoever reserved them. Threads: as in core/device.
#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "core/device/device.h"
#include "core/threads/host_streams.h"

namespace zl::cpu {

// Runs a validated op on the calling thread and `threads` - 1 others.
void run_op(const Op& op, int threads);

struct DeviceOptions {
  int threads = 1;  // OpenMP threads of work on the rank's own thread and on the host's stream
  // Called when a task on another stream throws, or when an exception ends the rank while work is
  // under way, so that nobody waits for it.
  HostStream::OnFailure on_failure;
  std::int64_t host_memory = 0;  // DeviceProperties'
  // The rank's own thread does what it enqueues on the communication stream at once, unless
  // something before it is under way, as a file that is read. For a rank alone, whose collectives
  // are copies: another thread would take the cores of the ops that it is to run beside, and wake
  // up late.
  bool communicates_itself = false;
};

class Device final : public zl::Device {
 public:
  explicit Device(DeviceOptions options);
  ~Device() override;

  DeviceProperties properties() const override;
  // nullptr also where the slabs of all ranks and runs of the process would be more than
  // machine_memory() was when there were none.
  std::byte* reserve(MemorySpace space, std::int64_t bytes) override;
  // First waits for the work of every stream, which may still use the slab.
  void release(MemorySpace space, std::byte* slab, std::int64_t bytes) override;

  void run(StreamId stream, const Op& op, Timing* timing) override;
  void copy(StreamId stream, std::byte* destination, const std::byte* source, std::int64_t bytes,
            Timing* timing) override;
  void run_host(StreamId stream, std::function<void()> work, Timing* timing) override {
    enqueue(stream, std::move(work), timing);
  }
  EventId record(StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  void synchronize(StreamId stream) override;
  double read(StreamId stream, ProbeKind what, const TensorView& scalar) override;

  // Any work on a stream: at once on the rank's own thread, later on the others. Some is told how
  // many OpenMP threads it has there.
  void enqueue(StreamId stream, std::function<void()> work, Timing* timing);
  void enqueue(StreamId stream, std::function<void(int threads)> work, Timing* timing);
  // As HostStreams'.
  std::vector<std::exception_ptr> finish();

 private:
  void drain();
  bool is_at_once(StreamId stream) const {
    if (stream == StreamId::compute) return true;
    return options_.communicates_itself && stream == StreamId::communication &&
           workers_.idle(stream);
  }
  // Of work that is left to a stream's thread.
  int worker_threads(StreamId stream) const {
    return stream == StreamId::host ? options_.threads : 1;
  }

  DeviceOptions options_;
  std::int64_t compute_events_ = 0;
  HostStreams workers_;  // all but compute
};

}  // namespace zl::cpu
