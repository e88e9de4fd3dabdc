// A device and a communicator that pass everything on to another: what a test watches or spoils it
// overrides. Ownership: refer to what they pass on to. Threads: as that.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/device/communicator.h"
#include "core/device/device.h"

namespace zl::test {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(Device& real) : real_(real) {}

  DeviceProperties properties() const override { return real_.properties(); }
  std::byte* reserve(MemorySpace space, std::int64_t bytes) override {
    return real_.reserve(space, bytes);
  }
  void release(MemorySpace space, std::byte* slab, std::int64_t bytes) override {
    real_.release(space, slab, bytes);
  }
  void enter(Phase phase, int unit) override { real_.enter(phase, unit); }
  void leave() override { real_.leave(); }
  void run(StreamId stream, const Op& op, Timing* timing) override {
    real_.run(stream, op, timing);
  }
  void copy(StreamId stream, std::byte* destination, const std::byte* source, std::int64_t bytes,
            Timing* timing) override {
    real_.copy(stream, destination, source, bytes, timing);
  }
  void run_host(StreamId stream, std::function<void()> work, Timing* timing) override {
    real_.run_host(stream, std::move(work), timing);
  }
  EventId record(StreamId stream) override { return real_.record(stream); }
  void wait(StreamId stream, EventId event) override { real_.wait(stream, event); }
  void synchronize(StreamId stream) override { real_.synchronize(stream); }
  double read(StreamId stream, ProbeKind what, const TensorView& scalar) override {
    return real_.read(stream, what, scalar);
  }

 private:
  Device& real_;
};

class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& real) : real_(real) {}

  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  std::string link() const override { return real_.link(); }
  void run(StreamId stream, const Collective& collective, Timing* timing) override {
    real_.run(stream, collective, timing);
  }
  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override {
    real_.exchange(stream, messages, timing);
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return real_.split(color, key);
  }

 private:
  Communicator& real_;
};

}  // namespace zl::test
