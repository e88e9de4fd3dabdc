// The recording device: hands out addresses and event ids like a real one and does nothing else.
// Ownership: owns no memory; its addresses are fake and must never be dereferenced.
// Threads: used by one rank's thread.
#pragma once

#include "core/device/device.h"

namespace zl::sim {

// What the program sees where a real device would compute.
struct Answers {
  double loss = 0;        // the natural logarithm of the vocabulary size: an untrained model
  double overflow = 1.0;  // largest magnitude: finite, so no step is skipped
  double squared_norm = 1.0;
};

class Device final : public zl::Device {
 public:
  Device(const DeviceProperties& properties, const Answers& answers)
      : properties_(properties), answers_(answers) {}

  DeviceProperties properties() const override { return properties_; }

  // 4096-aligned addresses from a counter. nullptr when the device space would exceed
  // properties().memory (0: unlimited); the pools keep to properties().host_memory.
  std::byte* reserve(MemorySpace space, std::int64_t bytes) override;
  void release(MemorySpace space, std::byte* slab, std::int64_t bytes) override;

  void run(StreamId, const Op&, Timing*) override {}
  void copy(StreamId, std::byte*, const std::byte*, std::int64_t, Timing*) override {}

  void run_host(StreamId, std::function<void()>, Timing*) override {}
  EventId record(StreamId) override { return next_event_++; }
  void wait(StreamId, EventId) override {}
  void synchronize(StreamId) override {}

  double read(StreamId stream, ProbeKind what, const TensorView& scalar) override;

 private:
  DeviceProperties properties_;
  Answers answers_;
  std::uintptr_t next_address_ = 0x100000000000;
  std::int64_t device_bytes_ = 0;
  EventId next_event_ = 0;
};

}  // namespace zl::sim
