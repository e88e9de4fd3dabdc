// How the streams of the GPU and those of the host wait for each other.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/event_ring.h"
#include "backends/cuda/world.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "tests/cuda_fake/fake.h"

namespace zl::cuda {
namespace {

constexpr std::int64_t kBytes = 4096;

class Streams : public testing::Test {
 protected:
  TensorView room(MemorySpace space) {
    slabs_.push_back({space, device_.reserve(space, kBytes)});
    return {slabs_.back().second, DType::f32, Shape{kBytes / 4}};
  }
  void copy(StreamId stream, const TensorView& to, const TensorView& from) {
    device_.copy(stream, to.data, from.data, from.bytes(), nullptr);
  }
  void order(StreamId first, StreamId second) { device_.wait(second, device_.record(first)); }
  void TearDown() override {
    for (const auto& [space, slab] : slabs_) device_.release(space, slab, kBytes);
  }

  std::vector<std::string> failures_;
  Device device_{0, 0, [this](const std::string& why) { failures_.push_back(why); }, true,
                 [](const Op& op) { fake::run_on_host(op, 1); }};
  std::vector<std::pair<MemorySpace, std::byte*>> slabs_;
};

// Down, one step of the host, and up again, with two buffers under way: pinned and pageable.
TEST_F(Streams, PassABufferRoundInOrder) {
  for (const MemorySpace space : {MemorySpace::pinned_host, MemorySpace::host}) {
    const TensorView sum = room(MemorySpace::device);
    device_.run(StreamId::compute, Fill{sum, 0}, nullptr);
    const TensorView device[2] = {room(MemorySpace::device), room(MemorySpace::device)};
    const TensorView host[2] = {room(space), room(space)};
    const TensorView one = room(space);
    device_.run(StreamId::host, Fill{one, 1}, nullptr);
    constexpr int kRounds = 500;
    for (int round = 0; round < kRounds; ++round) {
      const TensorView &on_device = device[round % 2], &on_host = host[round % 2];
      device_.run(StreamId::compute, Fill{on_device, static_cast<float>(round)}, nullptr);
      order(StreamId::compute, StreamId::copy_out);
      if (round >= 2) order(StreamId::host, StreamId::copy_out);
      copy(StreamId::copy_out, on_host, on_device);
      order(StreamId::copy_out, StreamId::host);
      device_.run(StreamId::host, Axpy{one, on_host, 1.0, true}, nullptr);
      order(StreamId::host, StreamId::copy_in);
      copy(StreamId::copy_in, on_device, on_host);
      order(StreamId::copy_in, StreamId::compute);
      device_.run(StreamId::compute, Axpy{on_device, sum, 1.0, true}, nullptr);
    }
    const double total = device_.read(StreamId::compute, ProbeKind::loss, sum.flat(7, 1));
    EXPECT_EQ(total, kRounds * (kRounds + 1) / 2);
  }
}

// While a thread keeps the event of a mark, the ring uses others.
TEST(EventRingMarks, StayThoseOfTheThreadsThatWait) {
  Device device(0, 0);
  const Stream stream = device.stream(StreamId::compute);
  EventRing ring;
  const EventRing::Event kept = ring.share(ring.record(stream));
  for (std::int64_t i = 0; i < EventRing::kEvents; ++i) ring.record(stream);
  EXPECT_EQ(kept.use_count(), 1) << "the ring has let it go";
  const EventRing::Event again = ring.share(EventRing::kEvents);
  EXPECT_NE(again, kept);
  CUevent_st* const released = ring.share(1).get();
  ring.record(stream);
  EXPECT_EQ(ring.share(EventRing::kEvents + 1).get(), released) << "nobody kept it: used again";
}

// A host task waits for the mark it was given, not for what is enqueued behind it.
TEST_F(Streams, AHostTaskWaitsForItsMarkOnly) {
  std::atomic<bool> open{false};
  const EventId before = device_.record(StreamId::compute);
  device_.wait(StreamId::host, before);
  fake::enqueue(device_.stream(StreamId::compute), [&] { open.wait(false); });
  for (std::int64_t i = 0; i < 2 * EventRing::kEvents; ++i) device_.record(StreamId::compute);
  device_.synchronize(StreamId::host);  // would hang
  open = true;
  open.notify_all();
  device_.synchronize(StreamId::compute);  // which may only now look at `open`
}

// A matrix product waits for the op behind it; it must not wait for the host as well.
TEST_F(Streams, AHeldProductStartsBeforeTheRankWaits) {
  const TensorView x = room(MemorySpace::device), y = room(MemorySpace::device);
  const auto matrix = [](const TensorView& view, DType dtype) {
    return TensorView{view.data, dtype, Shape{16, 16}};
  };
  const TensorView a = matrix(x, DType::f32), c = matrix(y, DType::f32);
  for (const StreamId stream : {StreamId::copy_in, StreamId::compute}) {
    const std::int64_t launched = fake::launches();
    device_.run(StreamId::compute, Gemm{a, a, c, {}, false, true, false}, nullptr);
    ASSERT_EQ(fake::launches(), launched) << "products are not held any more";
    std::atomic<std::int64_t> seen{0};
    device_.run_host(
        StreamId::host,
        [&] {
          while (fake::launches() == launched) std::this_thread::yield();  // would hang
          seen = fake::launches();
        },
        nullptr);
    device_.wait(stream, device_.record(StreamId::host));
    EXPECT_EQ(seen, launched + 1);
  }
}

TEST_F(Streams, AFailureOfTheHostIsThrownOnceByTheNextCall) {
  const TensorView x = room(MemorySpace::device);
  const std::function<void()> questions[] = {
      [&] { device_.synchronize(StreamId::host); },
      [&] { device_.wait(StreamId::copy_in, device_.record(StreamId::host)); },
      [&] {
        order(StreamId::host, StreamId::file_out);
        device_.synchronize(StreamId::file_out);
        device_.run(StreamId::compute, Fill{x, 1}, nullptr);
      }};
  for (const auto& ask : questions) {
    failures_.clear();
    device_.run_host(
        StreamId::host, [] { throw std::domain_error("no disk"); }, nullptr);
    EXPECT_THROW(ask(), std::domain_error);
    EXPECT_EQ(failures_, std::vector<std::string>{"no disk"});
    EXPECT_NO_THROW(device_.run(StreamId::compute, Fill{x, 1}, nullptr));
  }
}

TEST_F(Streams, OpsOfTheHostAreTimed) {
  const TensorView x = room(MemorySpace::pinned_host);
  Timing fill, later;
  device_.run(StreamId::host, Fill{x, 1}, &fill);
  device_.run_host(
      StreamId::host, [] {}, &later);
  device_.synchronize(StreamId::host);
  EXPECT_GT(fill.start_ns, 0);
  EXPECT_LE(fill.end_ns, later.start_ns);
}

TEST(HostOps, AreAskedForByName) {
  Device device(0, 0);
  std::byte* slab = device.reserve(MemorySpace::host, kBytes);
  const TensorView x{slab, DType::f32, Shape{4}};
  EXPECT_THROW(device.run(StreamId::host, Fill{x, 1}, nullptr), Error);
  EXPECT_THROW(device.run_host(
                   StreamId::copy_in, [] {}, nullptr),
               Error);
  device.release(MemorySpace::host, slab, kBytes);
}

// The other ranks are let go, and the cause is what the caller hears.
TEST(HostFailures, EndTheWorld) {
  const auto world = make_world({.ranks = 3, .threads_per_rank = 1}, fake::run_on_host);
  EXPECT_THROW(world->run([&](RankHandle rank) {
    std::byte* slab = rank.device.reserve(MemorySpace::device, kBytes);
    const TensorView x{slab, DType::f32, Shape{4}};
    const Segment segment{x, x};
    if (rank.communicator.rank() == 1) {
      rank.device.run_host(
          StreamId::file_in, [] { throw std::domain_error("no disk"); }, nullptr);
    }
    for (int i = 0; i < 1000000; ++i) {
      rank.communicator.run(
          StreamId::compute,
          {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}}, nullptr);
    }
  }),
               std::domain_error);
}

}  // namespace
}  // namespace zl::cuda
