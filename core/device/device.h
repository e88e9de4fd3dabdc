// The interface every backend implements: memory slabs, streams and events, and running ops.
// A device executes ops (CPU, CUDA) or only records them (simulator: nothing happens).
// Ownership: owns its streams, events and slabs. Threads: one device belongs to one rank; calls
// come from that rank's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/base/memory.h"
#include "core/base/stream.h"
#include "core/base/tensor.h"
#include "core/ops/op_fwd.h"
#include "core/trace/event.h"

namespace zl {

struct DeviceProperties {
  std::string name;         // "cpu", "NVIDIA H200", ...
  std::int64_t memory = 0;  // bytes of the device space; 0: unknown
  // Bytes of host memory that this rank may hold, its share of the machine's; 0: unlimited. Where
  // memory_is_host, the device space is part of them.
  std::int64_t host_memory = 0;
  bool memory_is_host = false;
  std::int64_t workspace = 0;  // bytes of device memory its libraries need lent; 0: none
};

// What a value read by the host means; the simulator answers from the scenario.
enum class ProbeKind : std::uint8_t { loss, overflow, squared_norm, stop, variance };

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceProperties properties() const = 0;

  // A slab aligned to 4096 bytes; nullptr when the machine has no more. Contents are undefined.
  virtual std::byte* reserve(MemorySpace space, std::int64_t bytes) = 0;
  virtual void release(MemorySpace space, std::byte* slab, std::int64_t bytes) = 0;

  // Scratch for its ops, properties().workspace bytes, aligned to 512; nullptr takes it back.
  // Devices that ask for none ignore it.
  virtual void lend_workspace(std::byte* /*memory*/, std::int64_t /*bytes*/) {}

  // What is enqueued in between belongs to this part of the step: for profilers. They nest.
  virtual void enter(Phase /*phase*/, int /*unit*/) {}
  virtual void leave() {}

  // Enqueues a validated op; *timing is filled when the stream is synchronised after it at the
  // latest. nullptr: it is not timed. `timing` outlives the stream's work.
  virtual void run(StreamId stream, const Op& op, Timing* timing) = 0;
  // Enqueues a copy of `bytes` between any two spaces, host memory of the caller included. Host
  // memory must stay valid until the stream is synchronised.
  virtual void copy(StreamId stream, std::byte* destination, const std::byte* source,
                    std::int64_t bytes, Timing* timing) = 0;

  // Enqueues work of the host's own on the host stream or a file stream; `work` may block and
  // throw.
  virtual void run_host(StreamId stream, std::function<void()> work, Timing* timing) = 0;

  virtual EventId record(StreamId stream) = 0;
  virtual void wait(StreamId stream, EventId event) = 0;
  // Blocks until all work of the stream is done; rethrows what failed on it.
  virtual void synchronize(StreamId stream) = 0;

  // Synchronises the stream and returns the first element of `scalar` (f32 or f64) as double.
  virtual double read(StreamId stream, ProbeKind what, const TensorView& scalar) = 0;
};

}  // namespace zl
