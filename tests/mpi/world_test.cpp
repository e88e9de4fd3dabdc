// Ranks that are processes train to the bits of thread ranks, and fail together: with one cause,
// the same everywhere, and ready for the next run.
#include "backends/mpi/world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "backends/mpi/communicator.h"
#include "backends/mpi/messages.h"
#include "core/rank/pool.h"
#include "core/threads/failures.h"
#include "tests/backends_cpu_world/ranks.h"
#include "tests/engine/comparisons.h"
#include "tests/engine/traffic.h"
#include "tests/mpi/processes.h"

namespace zl::mpi {
namespace {

using cpu::test::Array;

void all_reduce(RankHandle rank, StreamId stream = StreamId::compute, std::int64_t count = 1) {
  Array array(DType::f32, count);
  for (std::int64_t i = 0; i < count; ++i) array.set(i, 1);
  const Segment segment{array.view(), array.view()};
  rank.communicator.run(
      stream, {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}}, nullptr);
  rank.device.synchronize(stream);
  EXPECT_EQ(array.get(count - 1), ranks());
}

// What the world threw here; the next run must not notice.
std::string message_of_run(const std::function<void(RankHandle)>& program,
                           std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
  const auto world =
      make_world({.ranks = ranks(), .threads_per_rank = 1, .collective_timeout = timeout});
  std::string message;
  try {
    world->run(program);
  } catch (const RankLeft& error) {
    EXPECT_GT(me(), 0) << "rank 0 has the cause";
    message = error.what();
  } catch (const Error& error) {
    EXPECT_EQ(me(), 0);
    message = error.what();
  }
  make_world({.ranks = ranks(), .threads_per_rank = 1})->run([](RankHandle rank) {
    all_reduce(rank);
    all_reduce(rank, StreamId::communication, 5000);
  });
  return message;
}

TEST(MpiTraining, HasTheBitsOfThreadRanks) {
  std::vector<Strategy> all = test::variants(DType::bf16);
  Strategy offload = test::strategy(3, DType::bf16);
  offload.name = "zero-3 on the host";
  offload.zero.overlap_comm = true;
  offload.offload.optimizer = offload.offload.parameters = Tier::cpu;
  all.push_back(offload);
  Strategy onebit = test::strategy(1, DType::f32);
  onebit.name = "1-bit Adam";
  onebit.optimizer.kind = OptimizerKind::onebit_adam;
  onebit.optimizer.onebit.freeze_step = 1;
  all.push_back(onebit);
  for (const Strategy& s : all) {
    ProgramOptions options = test::steps(3);
    std::vector<std::vector<float>> weights;
    options.at_end = [&](Engine& engine) {
      for (int p = 0; p < static_cast<int>(engine.parameters().specs.size()); ++p) {
        weights.push_back(engine.gather_parameter(p));
      }
    };
    const auto world = make_world({.ranks = ranks(), .threads_per_rank = 1});
    test::Finished mine = test::run(*world, test::tiny_gpt2(), s, options);
    if (me() > 0) continue;
    mine.weights = weights;
    test::expect_same_bits(test::run_cpu(ranks(), test::tiny_gpt2(), s, test::steps(3)), mine,
                           s.name);
  }
}

std::vector<double> of_all_ranks(RankHandle rank, const std::vector<double>& mine) {
  Array array(DType::f64, static_cast<std::int64_t>(mine.size()));
  for (std::size_t i = 0; i < mine.size(); ++i) array.set(static_cast<std::int64_t>(i), mine[i]);
  const Segment segment{array.view(), array.view()};
  rank.communicator.run(
      StreamId::compute,
      {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::control, {&segment, 1}}, nullptr);
  std::vector<double> sums;
  for (std::int64_t i = 0; i < array.count; ++i) sums.push_back(array.get(i));
  return sums;
}

// What the processes hand to MPI is what the books say, and a header to every peer for each call,
// which is in no book.
TEST(MpiTraffic, SendsTheBytesOfTheBooksAndAHeaderACall) {
  for (const Strategy& s : test::strategies_that_send()) {
    const ModelConfig model = test::tiny_llama();
    const TokenSource data = test::learnable_tokens(model.vocab);
    ProgramOptions options = test::steps(4);
    options.sequence_length = model.max_sequence;
    options.keep_trace = true;
    make_world({.ranks = ranks(), .threads_per_rank = 1})->run([&](RankHandle handle) {
      const auto& mpi = dynamic_cast<const MpiCommunicator&>(handle.communicator);
      const RankOutcome outcome = run_rank(handle, model, s, data, options);
      std::vector<double> mine;
      for (const Purpose purpose : {Purpose::data, Purpose::control}) {
        mine.push_back(static_cast<double>(mpi.payload().bytes(purpose)));
        mine.push_back(static_cast<double>(mpi.headers().bytes(purpose)));
      }
      const std::vector<double> sums = of_all_ranks(handle, mine);
      test::expect_traffic({std::llround(sums[0]), std::llround(sums[2])}, ranks(), outcome,
                           s.name);
      std::int64_t calls = 0;
      for (const CollectiveTotals& each : outcome.result.communication) {
        if (each.group != "tiers") calls += each.count;
      }
      const std::int64_t peers = ranks() * (ranks() - 1);
      EXPECT_EQ(std::llround(sums[1] + sums[3]), calls * peers * MpiCommunicator::kHeaderBytes)
          << s.name;
    });
  }
}

// The two sides of a message send each other a header; those of a collective go to all of its
// group, and so it is where the world is split.
std::int64_t headers_of(const Trace& trace, const Mesh& mesh) {
  std::int64_t headers = 0;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const auto each = static_cast<Axis>(axis);
    if (mesh.has_group(each) && mesh.size(each) < ranks()) headers += ranks() - 1;
  }
  for (const TraceEvent& event : trace.events()) {
    if (event.type == EventType::message) ++headers;
    if (event.type == EventType::collective) headers += event.k - 1;
  }
  return headers;
}

TEST(MpiTraffic, OfMeshesSendsTheBytesOfTheBooks) {
  ModelConfig model = test::tiny_llama();
  model.layers = 4;
  const TokenSource data = test::learnable_tokens(model.vocab);
  ProgramOptions options = test::steps(3);
  options.sequence_length = model.max_sequence;
  options.keep_trace = true;
  for (const Strategy& s : test::meshes_that_send()) {
    if (ranks() % (s.tensor.ranks * s.pipeline.ranks * s.zero.replicas) != 0) continue;
    const Mesh mesh = mesh_of(s, ranks());
    make_world({.ranks = ranks(), .threads_per_rank = 1})->run([&](RankHandle handle) {
      const auto& mpi = dynamic_cast<const MpiCommunicator&>(handle.communicator);
      const RankOutcome outcome = run_rank(handle, model, s, data, options);
      const test::OwnTraffic own = test::own_traffic(outcome, mesh, me());
      const std::int64_t headers = headers_of(outcome.trace, mesh) * MpiCommunicator::kHeaderBytes;
      std::vector<double> mine;
      for (const std::int64_t bytes :
           {mpi.payload().bytes(Purpose::data), mpi.payload().bytes(Purpose::control),
            own.booked.data, own.booked.control, own.needed.data, own.needed.control}) {
        mine.push_back(static_cast<double>(bytes));
      }
      EXPECT_EQ(mpi.headers().bytes(Purpose::data) + mpi.headers().bytes(Purpose::control), headers)
          << s.name;
      const std::vector<double> sums = of_all_ranks(handle, mine);
      const auto sum = [&](int i) {
        return test::TrafficSum{std::llround(sums[i]), std::llround(sums[i + 1])};
      };
      test::expect_traffic(sum(0), {sum(2), sum(4)}, s.name);
    });
  }
}

TEST(MpiFailures, AMismatchNamesBothCallsOnEveryRank) {
  const std::string message = message_of_run([](RankHandle rank) {
    all_reduce(rank);
    all_reduce(rank, StreamId::compute, me() == 1 ? 7 : 3);
  });
  // Whoever is first to see it is the cause.
  EXPECT_EQ(message.substr(message.find(": ")),
            ": collective mismatch at #2 of the stream 'compute': rank 0 calls all_reduce (sum) of "
            "1 tensor fp32 [3] (group data), rank 1 calls all_reduce (sum) of 1 tensor fp32 [7] "
            "(group data)");
}

TEST(MpiFailures, OfOneRankReleaseTheOthersFromTheirCollectives) {
  for (const int bad : {0, ranks() - 1}) {
    for (const StreamId stream : {StreamId::compute, StreamId::communication}) {
      const std::string message = message_of_run([&](RankHandle rank) {
        if (me() == bad) throw Error(ErrorCode::failed, "the disk is full");
        for (int i = 0; i < 1000000; ++i) all_reduce(rank, stream, 20000);
      });
      EXPECT_EQ(message, "rank " + std::to_string(bad) + ": the disk is full");
    }
  }
}

TEST(MpiFailures, OfAWorkerAreTheCause) {
  const std::string message = message_of_run([](RankHandle rank) {
    if (me() == 1) {
      rank.device.run_host(
          StreamId::file_in, [] { throw std::runtime_error("no disk"); }, nullptr);
    }
    for (int i = 0; i < 1000000; ++i) all_reduce(rank);
  });
  EXPECT_EQ(message, "rank 1: no disk");
}

TEST(MpiFailures, OutOfMemoryIsTheSameValueOnAllRanks) {
  const auto world = make_world({.ranks = ranks(), .threads_per_rank = 1});
  try {
    world->run([](RankHandle rank) {
      if (me() == 1) throw OutOfMemory("no room", 4711);
      all_reduce(rank);
    });
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(), "rank 1: no room");
    EXPECT_EQ(error.requested(), 4711);
  }
}

TEST(MpiFailures, ARankThatHasEndedIsNotWaitedFor) {
  const std::string message = message_of_run([](RankHandle rank) {
    all_reduce(rank);
    if (me() < ranks() - 1) all_reduce(rank);
  });
  const std::string last = std::to_string(ranks() - 1);
  EXPECT_TRUE(message.ends_with("rank " + last + " has left: its program has ended")) << message;
  EXPECT_NE(message.find(" waits in all_reduce (sum) of 1 tensor fp32 [1]"), std::string::npos)
      << message;
}

// The last rank waits elsewhere: nobody meets anybody, and the first to notice says who.
TEST(MpiFailures, AMissingRankIsNamedInTime) {
  const std::string message = message_of_run(
      [](RankHandle rank) {
        all_reduce(rank, me() == ranks() - 1 ? StreamId::communication : StreamId::compute);
      },
      std::chrono::milliseconds(300));
  EXPECT_NE(message.find("collective timed out after 300 ms: rank "), std::string::npos) << message;
  EXPECT_NE(message.find("; not there: rank "), std::string::npos) << message;
}

}  // namespace
}  // namespace zl::mpi
