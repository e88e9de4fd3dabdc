// A program with messages and collectives along the axes of a mesh: what thread ranks execute is
// what the recording device records.
#include <gtest/gtest.h>

#include "backends/cpu/world.h"
#include "core/ops/elementwise.h"
#include "core/rank/rank_context.h"
#include "simulator/world.h"

namespace zl::test {
namespace {

const Mesh kMesh{.tensor = 2, .pipeline = 2};

struct Books {
  std::uint64_t hash = 0;
  std::int64_t events = 0, wire_bytes = 0;
  std::vector<std::string> hazards;
  float result = 0;
};

// Two stages of two tensor ranks: activations go up, gradients come down in one call with the next
// activation, and each stage adds over its tensor ranks.
Books run_stages(RankHandle rank, std::int64_t count) {
  RankContext context(rank.device, rank.communicator, {.record_accesses = true, .mesh = kMesh});
  const int stage = context.rank(Axis::pipeline), peer = 1 - stage;
  const auto make = [&](const char* what) {
    return context.allocate(DType::f32, Shape{count}, MemoryTag::activation, {what});
  };
  Tensor out = make("out"), in = make("in"), sum = make("sum");
  constexpr StreamId kStream = StreamId::communication;
  context.run(Fill{sum, 1.0});
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    context.run(Fill{out, double(1 + micro_batch)});
    context.wait(kStream, context.record(StreamId::compute));
    const Message both[] = {{peer, true, out}, {peer, false, in}};
    context.exchange(kStream, Axis::pipeline, both);
    const Segment segment{in, in};
    context.collective(
        kStream,
        {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
    context.wait(StreamId::compute, context.record(kStream));
    context.run(Axpy{in, sum, 1.0, true});
  }
  Books books;
  context.synchronize(StreamId::compute);
  context.synchronize(kStream);
  books.hash = context.trace().sequence_hash();
  books.events = context.trace().op_count();
  for (const TraceEvent& event : context.trace().events()) books.wire_bytes += event.wire_bytes;
  books.hazards = find_hazards(context.trace(), context.accesses());
  context.download(StreamId::compute, &books.result, sum.view.flat(count - 1, 1));
  context.synchronize(StreamId::compute);
  return books;
}

TEST(MessageTwin, RecordedIsExecuted) {
  for (const std::int64_t count : {1, 1000}) {
    Books executed, recorded;
    cpu::make_world({.ranks = 4, .threads_per_rank = 1})->run([&](RankHandle rank) {
      const Books books = run_stages(rank, count);
      EXPECT_EQ(books.result, 1 + 2 * (1 + 2 + 3));
      if (rank.communicator.rank() == 0) executed = books;
    });
    sim::SimOptions options;
    options.mesh = kMesh;
    sim::make_world({.ranks = 4}, options)->run([&](RankHandle rank) {
      recorded = run_stages(rank, count);
    });
    EXPECT_EQ(executed.hash, recorded.hash);
    EXPECT_EQ(executed.events, recorded.events);
    // Each micro-batch sends the tensor once to the peer, and by a ring over the two tensor ranks.
    const std::int64_t ring = 2 * ((count + 1) / 2);
    EXPECT_EQ(executed.wire_bytes, 3 * 4 * (count + ring));
    EXPECT_EQ(recorded.wire_bytes, executed.wire_bytes);
    EXPECT_EQ(executed.hazards, std::vector<std::string>{});
    EXPECT_EQ(recorded.hazards, executed.hazards);
  }
}

}  // namespace
}  // namespace zl::test
