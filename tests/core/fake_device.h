// A device and a communicator that do nothing but hand out fake addresses and count calls.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/device/communicator.h"
#include "core/device/device.h"

namespace zl::test {

class FakeDevice final : public Device {
 public:
  // Where slabs go: a system may place the next one above or below the last.
  enum class Placement { upwards, downwards };
  explicit FakeDevice(Placement placement = Placement::upwards, std::int64_t memory = 0)
      : placement_(placement), memory_(memory) {}

  DeviceProperties properties() const override {
    DeviceProperties properties;
    properties.name = "fake";
    properties.memory = memory_;
    properties.host_memory = host_memory;
    properties.memory_is_host = memory_is_host;
    properties.workspace = workspace;
    return properties;
  }
  void lend_workspace(std::byte* memory, std::int64_t bytes) override {
    lent = memory;
    lent_bytes = bytes;
  }
  std::byte* reserve(MemorySpace, std::int64_t bytes) override {
    if (memory_ > 0 && reserved + bytes > memory_) return nullptr;
    reserved += bytes;
    if (placement_ == Placement::downwards) next_ -= bytes + kGap;
    auto* slab = reinterpret_cast<std::byte*>(next_);
    if (placement_ == Placement::upwards) next_ += bytes + kGap;
    slabs[slab] = bytes;
    return slab;
  }
  void release(MemorySpace, std::byte* slab, std::int64_t bytes) override {
    reserved -= bytes;
    slabs.erase(slab);
  }
  void run(StreamId, const Op&, Timing* timing) override { finish(timing); }
  void copy(StreamId, std::byte*, const std::byte*, std::int64_t, Timing* timing) override {
    finish(timing);
  }
  void run_host(StreamId, std::function<void()>, Timing* timing) override { finish(timing); }
  EventId record(StreamId) override { return events++; }
  void wait(StreamId, EventId) override {}
  void synchronize(StreamId) override {}
  double read(StreamId, ProbeKind, const TensorView&) override { return 0; }

  std::map<std::byte*, std::int64_t> slabs;
  std::int64_t reserved = 0;
  EventId events = 0;
  std::int64_t workspace = 0;  // as properties() says, like the next two
  std::int64_t host_memory = 0;
  bool memory_is_host = false;
  std::byte* lent = nullptr;
  std::int64_t lent_bytes = 0;
  std::int64_t finished = 0;  // ops and copies

 private:
  static constexpr std::int64_t kGap = 1 << 20;
  void finish(Timing* timing) {
    ++finished;
    if (timing != nullptr) *timing = {finished, finished};
  }

  Placement placement_;
  std::int64_t memory_;
  std::int64_t next_ = std::int64_t{1} << 40;
};

class FakeCommunicator final : public Communicator {
 public:
  explicit FakeCommunicator(int size = 4) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  std::string link() const override { return "fake"; }
  void run(StreamId, const Collective&, Timing* timing) override {
    if (timing != nullptr) *timing = {1, 2};
  }
  void exchange(StreamId, std::span<const Message> messages, Timing* timing) override {
    exchanged += static_cast<int>(messages.size());
    if (timing != nullptr) *timing = {3, 4};
  }
  std::unique_ptr<Communicator> split(int, int) override {
    return std::make_unique<FakeCommunicator>(1);
  }

  int exchanged = 0;  // messages

 private:
  int size_;
};

}  // namespace zl::test
