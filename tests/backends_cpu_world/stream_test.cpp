// Order on streams, events between them, failures of tasks, and slabs.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backends/cpu/device.h"
#include "core/ops/elementwise.h"
#include "core/ops/op.h"
#include "tests/backends_cpu_world/ranks.h"
#include "tests/own_cores.h"

namespace zl::cpu::test {
namespace {

using zl::test::own_cores;

constexpr StreamId kWorkers[] = {StreamId::communication, StreamId::copy_in, StreamId::copy_out};

TEST(DeviceStreams, TasksOfAStreamRunInOrder) {
  Device device({});
  for (const StreamId stream : kWorkers) {
    std::vector<int> order;
    for (int i = 0; i < 1000; ++i) {
      device.enqueue(
          stream, [&order, i] { order.push_back(i); }, nullptr);
    }
    device.synchronize(stream);
    ASSERT_EQ(order.size(), 1000u);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

// A value handed round three workers and the rank, ordered by events alone; sanitizers see a race
// where one is missing.
TEST(DeviceStreams, EventsOrderAProducerConsumerChain) {
  Device device({});
  std::int64_t value = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    EventId done = device.record(StreamId::compute);
    for (const StreamId stream : kWorkers) {
      device.wait(stream, done);
      device.enqueue(
          stream, [&value] { value += 1; }, nullptr);
      done = device.record(stream);
    }
    device.wait(StreamId::compute, done);
    ASSERT_EQ(value, 4 * round + 3);
    device.enqueue(
        StreamId::compute, [&value] { value += 1; }, nullptr);
  }
}

// Two buffers in turn between a producer and a consumer that never wait for the rank.
TEST(DeviceStreams, DoubleBufferingNeedsNoHost) {
  Device device({});
  constexpr std::size_t kRounds = 1000;
  std::array<std::vector<std::size_t>, 2> buffers{std::vector<std::size_t>(64),
                                                  std::vector<std::size_t>(64)};
  std::array<EventId, 2> consumed{device.record(StreamId::copy_out),
                                  device.record(StreamId::copy_out)};
  std::size_t wrong = 0, sum = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    auto& buffer = buffers[round % 2];
    device.wait(StreamId::copy_in, consumed[round % 2]);
    device.enqueue(
        StreamId::copy_in, [&buffer, round] { buffer.assign(64, round); }, nullptr);
    device.wait(StreamId::copy_out, device.record(StreamId::copy_in));
    device.enqueue(
        StreamId::copy_out,
        [&, round] {
          for (const std::size_t value : buffer) wrong += value != round;
          sum += buffer[0];
        },
        nullptr);
    consumed[round % 2] = device.record(StreamId::copy_out);
  }
  device.synchronize(StreamId::copy_out);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(sum, kRounds * (kRounds - 1) / 2);
}

// The thread on which the rank communicates.
std::thread::id sender_of(RankHandle rank) {
  auto& device = dynamic_cast<Device&>(rank.device);
  std::thread::id sends;
  device.enqueue(
      StreamId::communication, [&] { sends = std::this_thread::get_id(); }, nullptr);
  device.wait(StreamId::compute, device.record(StreamId::communication));
  return sends;
}

// Its collectives are copies, which another thread would only delay.
TEST(DeviceStreams, ARankAloneCommunicatesOnItsOwnThread) {
  for (const int ranks : {1, 2}) {
    make_world({.ranks = ranks, .threads_per_rank = 1})->run([&](RankHandle rank) {
      EXPECT_EQ(sender_of(rank) == std::this_thread::get_id(), ranks == 1);
    });
  }
}

// What has to wait for a file that is read does not keep the rank from computing.
TEST(DeviceStreams, WhatWaitsForACopyIsLeftToAThread) {
  make_world({.ranks = 1, .threads_per_rank = 1})->run([&](RankHandle rank) {
    auto& device = dynamic_cast<Device&>(rank.device);
    std::promise<void> computed;
    const std::shared_future<void> done = computed.get_future();
    bool was_computed = false;
    std::vector<std::thread::id> sent;
    device.enqueue(
        StreamId::copy_in,
        [&] {
          was_computed = done.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
        },
        nullptr);
    device.wait(StreamId::communication, device.record(StreamId::copy_in));
    for (int i = 0; i < 2; ++i) {  // the second after the first
      device.enqueue(
          StreamId::communication,
          [&] {
            EXPECT_TRUE(was_computed);
            sent.push_back(std::this_thread::get_id());
          },
          nullptr);
    }
    computed.set_value();
    device.wait(StreamId::compute, device.record(StreamId::communication));
    ASSERT_EQ(sent.size(), 2u);
    for (const std::thread::id& each : sent) EXPECT_NE(each, std::this_thread::get_id());
    EXPECT_EQ(sender_of(rank), std::this_thread::get_id());  // nothing is under way any more
  });
}

// A team on the rank's own thread and the host's stream, else one: decided where the work goes, so
// that what is left to a thread has one even when nothing is under way any more.
TEST(DeviceStreams, WorkIsToldItsThreads) {
  Device device({.threads = 3, .communicates_itself = true});
  int told = 0;
  const auto tell = [&](StreamId stream) {
    device.enqueue(
        stream, [&](int threads) { told = threads; }, nullptr);
  };
  const std::map<StreamId, int> expected = {{StreamId::compute, 3},
                                            {StreamId::communication, 3},
                                            {StreamId::host, 3},
                                            {StreamId::copy_in, 1},
                                            {StreamId::file_out, 1}};
  for (const auto& [stream, threads] : expected) {
    tell(stream);
    device.synchronize(stream);
    EXPECT_EQ(told, threads) << name_of(stream);
  }
  std::promise<void> read;
  device.enqueue(
      StreamId::file_in, [&] { read.get_future().wait(); }, nullptr);
  device.wait(StreamId::communication, device.record(StreamId::file_in));
  tell(StreamId::communication);
  read.set_value();
  device.synchronize(StreamId::communication);
  EXPECT_EQ(told, 1);
}

TEST(DeviceStreams, OpsAndCopiesRunOnEveryStreamAndAreTimed) {
  Device device({});
  for (const StreamId stream : {StreamId::compute, StreamId::communication, StreamId::copy_in}) {
    Array x(DType::f32, 100), y(DType::f32, 100);
    Timing fill, axpy, copy;
    device.run(stream, Fill{x.view(), 3.0}, &fill);
    device.run(stream, Axpy{x.view(), y.view(), 2.0, false}, &axpy);
    device.copy(stream, x.bytes.data(), y.bytes.data(), y.view().bytes(), &copy);
    EXPECT_EQ(device.read(stream, ProbeKind::loss, x.part(99, 1)), 6.0);
    EXPECT_GT(fill.start_ns, 0);
    EXPECT_LE(fill.start_ns, fill.end_ns);
    EXPECT_LE(fill.end_ns, axpy.start_ns);
    EXPECT_LE(axpy.end_ns, copy.start_ns);
    EXPECT_LE(copy.start_ns, copy.end_ns);
  }
  Array scalar(DType::f64, 1);
  scalar.set(0, 1e300);
  EXPECT_EQ(device.read(StreamId::compute, ProbeKind::squared_norm, scalar.view()), 1e300);
}

TEST(DeviceFailures, AreRethrownOnceByTheNextCallAndSkipWhatFollows) {
  const std::function<void(Device&)> questions[] = {
      [](Device& device) { device.synchronize(StreamId::copy_in); },
      [](Device& device) { device.wait(StreamId::compute, device.record(StreamId::copy_in)); },
      [](Device& device) {
        const EventId event = device.record(StreamId::copy_in);
        device.wait(StreamId::copy_out, event);
        device.synchronize(StreamId::copy_out);
      }};
  for (const auto& ask : questions) {
    std::atomic<int> failures{0};
    Device device({.on_failure = [&](const std::string& why) { failures += why == "no disk"; }});
    std::atomic<bool> skipped{true};
    device.enqueue(
        StreamId::copy_in, [] { throw std::domain_error("no disk"); }, nullptr);
    device.enqueue(
        StreamId::copy_in, [&] { skipped = false; }, nullptr);
    EXPECT_THROW(ask(device), std::domain_error);
    EXPECT_TRUE(skipped);
    EXPECT_EQ(failures, 1);
    bool ran = false;
    device.enqueue(
        StreamId::copy_in, [&] { ran = true; }, nullptr);
    device.synchronize(StreamId::copy_in);
    EXPECT_TRUE(ran);
  }
}

TEST(DeviceFailures, NobodyAskedForDoNotEndTheProgram) {
  std::string told;
  const auto fail = [](Device& device) {
    device.enqueue(
        StreamId::copy_in, [] { throw std::domain_error("no disk"); }, nullptr);
  };
  {
    Device device({.on_failure = [&](const std::string& why) { told = why; }});
    fail(device);
  }
  EXPECT_EQ(told, "no disk");
  Device asked({});
  fail(asked);
  const std::vector<std::exception_ptr> failures = asked.finish();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THROW(std::rethrow_exception(failures[0]), std::domain_error);
}

TEST(DeviceFailures, OfTheComputeStreamComeOutAtOnce) {
  Device device({});
  EXPECT_THROW(device.enqueue(
                   StreamId::compute, [] { throw std::domain_error("now"); }, nullptr),
               std::domain_error);
}

TEST(DeviceFailures, OfAWorkerAreTheCauseTheWorldRethrows) {
  const auto world = make_world({.ranks = 3, .threads_per_rank = 1});
  EXPECT_THROW(world->run([&](RankHandle rank) {
    Array array(DType::f32, 1);
    const Segment segment{array.view(), array.view()};
    if (rank.communicator.rank() == 1) {
      dynamic_cast<Device&>(rank.device)
          .enqueue(
              StreamId::copy_in, [] { throw std::domain_error("no disk"); }, nullptr);
    }
    // Rank 1 hears of it here as "rank 1 has left", before anyone synchronises copy_in.
    for (int i = 0; i < 1000000; ++i) {
      rank.communicator.run(
          StreamId::compute,
          {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}}, nullptr);
    }
  }),
               std::domain_error);
}

TEST(DeviceMemory, SlabsAreAlignedWritableAndBounded) {
  Device device({});
  EXPECT_FALSE(device.properties().name.empty());
  EXPECT_GT(device.properties().memory, std::int64_t{1} << 20);
  for (const MemorySpace space :
       {MemorySpace::device, MemorySpace::pinned_host, MemorySpace::host}) {
    constexpr std::int64_t kBytes = (std::int64_t{3} << 20) + 512;
    std::byte* slab = device.reserve(space, kBytes);
    ASSERT_NE(slab, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab) % 4096, 0u);
    std::memset(slab, 1, kBytes);
    device.release(space, slab, kBytes);
  }
  setenv("ZEROLAB_MEMORY", "64MiB", 1);
  constexpr std::int64_t kAll = 64 << 20, kHalf = kAll / 2 + 4096;
  EXPECT_EQ(device.reserve(MemorySpace::device, kAll + 4096), nullptr);
  Device another({});  // of another run, beside the first
  std::byte* half = device.reserve(MemorySpace::device, kHalf);
  EXPECT_NE(half, nullptr);
  EXPECT_EQ(another.reserve(MemorySpace::host, kHalf), nullptr);
  device.release(MemorySpace::device, half, kHalf);
  std::byte* other_half = another.reserve(MemorySpace::host, kHalf);
  EXPECT_NE(other_half, nullptr);
  another.release(MemorySpace::host, other_half, kHalf);
  unsetenv("ZEROLAB_MEMORY");
}

// Streams through slabs that lie a power of two apart would share a bank of the memory.
TEST(DeviceMemory, SlabsBeginAtOffsetsOfTheirOwn) {
  Device one({}), other({});
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  constexpr std::size_t kHugePage = 2 << 20;
  std::vector<std::byte*> slabs;
  std::set<std::uintptr_t> offsets;
  for (int i = 0; i < 8; ++i) {
    slabs.push_back((i % 2 == 0 ? one : other).reserve(MemorySpace::device, kBytes));
    ASSERT_NE(slabs.back(), nullptr);
    offsets.insert(reinterpret_cast<std::uintptr_t>(slabs.back()) % kHugePage);
  }
  EXPECT_EQ(offsets.size(), slabs.size());
  for (std::size_t i = 0; i < slabs.size(); ++i) {
    (i % 2 == 0 ? one : other).release(MemorySpace::device, slabs[i], kBytes);
  }
}

TEST(DeviceMemory, ReleaseWaitsForWorkThatUsesTheSlab) {
  Device device({});
  constexpr std::int64_t kBytes = 1 << 20;
  constexpr int kTasks = 100;
  std::byte* slab = device.reserve(MemorySpace::device, kBytes);
  std::atomic<int> done{0};
  for (int i = 0; i < kTasks; ++i) {
    device.enqueue(
        StreamId::copy_in,
        [&done, slab, i] {
          std::memset(slab, i, kBytes);
          ++done;
        },
        nullptr);
  }
  device.release(MemorySpace::device, slab, kBytes);
  EXPECT_EQ(done, kTasks);
}

// Of a caller that is held to a core or two, so that few ranks outnumber them anywhere.
TEST(DeviceStreams, RunOnTheCoreOfTheirRankWhereAllWorkAndOutnumberCores) {
  std::thread([] {
    std::vector<int> few = own_cores();
    few.resize(std::min<std::size_t>(few.size(), 2));
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : few) CPU_SET(core, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    const auto world = make_world({.ranks = 4, .threads_per_rank = 1});
    for (const bool all_at_work : {true, false, true}) {
      const std::size_t cores = all_at_work ? 1 : few.size();
      world->expect_all_at_work(all_at_work);
      world->run([cores](RankHandle rank) {
        std::vector<int> of_stream;
        rank.device.run_host(
            StreamId::communication, [&of_stream] { of_stream = own_cores(); }, nullptr);
        rank.device.synchronize(StreamId::communication);
        EXPECT_EQ(of_stream, own_cores());
        EXPECT_EQ(of_stream.size(), cores);
      });
    }
    EXPECT_EQ(own_cores(), few) << "of who runs the world";
  }).join();
}

}  // namespace
}  // namespace zl::cpu::test
