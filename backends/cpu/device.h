// The CPU as a device: the compute stream runs on the rank's own thread, each other stream on a
// thread that starts with its first task.
// Ownership: owns streams; slabs belong to whoever reserved them. Threads: as in core/device.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "backends/cpu/stream.h"
#include "core/device/device.h"

namespace zl::cpu {

class Device final : public zl::Device {
 public:
  // threads: OpenMP threads of ops on the compute stream. on_failure: called when a task on another
  // stream throws, or when an exception ends the rank while work is under way, so that nobody waits
  // for it.
  explicit Device(int threads, Stream::OnFailure on_failure = {});
  ~Device() override;

  DeviceProperties properties() const override;
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

  // Any work on a stream: at once on the compute stream, later on the others.
  void enqueue(StreamId stream, std::function<void()> work, Timing* timing);
  // Waits for all work and returns the failures nobody has asked for.
  std::vector<std::exception_ptr> finish();

 private:
  Stream& worker(StreamId stream);
  void drain();
  void rethrow_failures();

  int threads_;
  Stream::OnFailure on_failure_;
  std::int64_t compute_events_ = 0;
  std::array<std::unique_ptr<Stream>, kStreams> workers_;  // [compute] stays empty
};

}  // namespace zl::cpu
