#include "core/trace/trace.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "core/ops/elementwise.h"
#include "core/rank/rank_context.h"
#include "tests/core/fake_device.h"

namespace zl {
namespace {

constexpr StreamId kCompute = StreamId::compute;
constexpr StreamId kComm = StreamId::communication;

// Runs a program on a fake device with access recording.
struct Recorded {
  explicit Recorded(const std::function<void(RankContext&)>& program) { program(context); }
  std::vector<std::string> hazards() const {
    return find_hazards(context.trace(), context.accesses());
  }
  std::uint64_t hash() const { return context.trace().sequence_hash(); }

  test::FakeDevice device;
  test::FakeCommunicator communicator;
  RankOptions options{0, true, true};
  RankContext context{device, communicator, options};
};

Tensor tensor(RankContext& context, std::int64_t count = 8) {
  return context.allocate(DType::f32, Shape{count}, MemoryTag::parameter, {"w"});
}

void copy(RankContext& context, StreamId stream, const TensorView& x, const TensorView& y) {
  context.run(stream, Axpy{x, y, 1.0, false});
}

void gather(RankContext& context, StreamId stream, const TensorView& chunk,
            const TensorView& full) {
  const Segment segment{chunk, full};
  context.collective(stream,
                     {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}});
}

void exchange(RankContext& context, StreamId stream, bool sends, const TensorView& tensor) {
  const Message message{2, sends, tensor};
  context.exchange(stream, Axis::data, {&message, 1});
}

TEST(Hazards, MessagesReadWhatTheySendAndWriteWhatTheyReceive) {
  const auto hazards = [](bool receives, bool waits) {
    return Recorded([&](RankContext& c) {
             Tensor x = tensor(c), out = tensor(c);
             exchange(c, kComm, !receives, x);
             if (waits) c.wait(kCompute, c.record(kComm));
             copy(c, kCompute, receives ? x : out, receives ? out : x);
           })
        .hazards();
  };
  for (const bool receives : {false, true}) {
    EXPECT_EQ(hazards(receives, true), std::vector<std::string>{});
    const auto found = hazards(receives, false);
    ASSERT_FALSE(found.empty());
    const char* what = receives ? "reads what receive from 2 (stream 1, unit -1, other) writes"
                                : "writes what send to 2 (stream 1, unit -1, other) reads";
    EXPECT_NE(found[0].find(what), std::string::npos) << found[0];
  }
}

TEST(Hazards, ReadOfWhatAnotherStreamWritesIsNamed) {
  const Recorded racy([](RankContext& c) {
    Tensor chunk = tensor(c, 2), full = tensor(c, 8), out = tensor(c, 8);
    gather(c, kComm, chunk, full);
    ScopeGuard scope(c, Phase::forward, 3);
    copy(c, kCompute, full, out);
  });
  ASSERT_EQ(racy.hazards().size(), 1u);
  EXPECT_EQ(racy.hazards()[0],
            "axpy [1,8,1] (stream 0, unit 3, forward) reads what all_gather (stream 1, unit -1, "
            "other) writes without waiting for it");
}

TEST(Hazards, RecordAndWaitOrderStreams) {
  const Recorded clean([](RankContext& c) {
    Tensor chunk = tensor(c, 2), full = tensor(c, 8), out = tensor(c, 8);
    gather(c, kComm, chunk, full);
    c.wait(kCompute, c.record(kComm));
    copy(c, kCompute, full, out);
    c.wait(kComm, c.record(kCompute));
    gather(c, kComm, chunk, full);
  });
  EXPECT_TRUE(clean.hazards().empty());
}

TEST(Hazards, AnEventRecordedTooEarlyDoesNotHelp) {
  const Recorded racy([](RankContext& c) {
    Tensor chunk = tensor(c, 2), full = tensor(c, 8), out = tensor(c, 8);
    const EventId early = c.record(kComm);
    gather(c, kComm, chunk, full);
    c.record(kComm);
    c.wait(kCompute, early);
    copy(c, kCompute, full, out);
  });
  EXPECT_EQ(racy.hazards().size(), 1u);
}

TEST(Hazards, OrderIsTransitiveAndSynchroniseOrdersEverything) {
  const Recorded clean([](RankContext& c) {
    Tensor a = tensor(c), b = tensor(c);
    copy(c, kComm, a, b);
    c.wait(StreamId::copy_in, c.record(kComm));
    c.wait(kCompute, c.record(StreamId::copy_in));
    copy(c, kCompute, b, a);
    c.synchronize(kCompute);
    copy(c, StreamId::copy_out, a, b);
  });
  EXPECT_TRUE(clean.hazards().empty());
}

TEST(Hazards, ReadsAndNeighboursDoNotConflict) {
  const Recorded clean([](RankContext& c) {
    Tensor a = tensor(c), b = tensor(c), d = tensor(c);
    copy(c, kCompute, a, b.view.flat(0, 8));
    copy(c, kComm, a, d);
    c.run(kCompute, Fill{b.view.flat(0, 4), 0});
    c.run(kCompute, Fill{b.view.flat(4, 0), 0});
    c.run(kCompute, Fill{d.view.flat(4, 0), 0});  // no bytes at all
    c.synchronize(kComm);
    c.run(kComm, Fill{d.view.flat(0, 4), 0});
    c.run(kCompute, Fill{d.view.flat(4, 4), 0});
  });
  EXPECT_TRUE(clean.hazards().empty());
}

TEST(Hazards, ReuseOfFreedMemoryIsAConflict) {
  const Recorded racy([](RankContext& c) {
    Tensor out = tensor(c);
    {
      Tensor sent = tensor(c);
      copy(c, kComm, sent, out);
    }
    Tensor reused = tensor(c);
    c.run(kCompute, Fill{reused, 0});
  });
  EXPECT_EQ(racy.hazards().size(), 1u);
}

// Random programs against a brute-force happens-before relation: pairs of events connected through
// streams, events and synchronisations, by transitive closure.
TEST(Hazards, AgreeWithBruteForceOnRandomPrograms) {
  constexpr std::size_t kLength = 60;
  int racy_programs = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    struct Node {
      std::size_t stream;
      std::set<std::size_t> before;
      std::size_t reads = 9, writes = 9;  // tensors; 9: none
    };
    std::vector<Node> nodes;
    const auto before_of = [&](std::size_t stream) {
      std::set<std::size_t> before;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].stream != stream) continue;
        before.insert(i);
        before.insert(nodes[i].before.begin(), nodes[i].before.end());
      }
      return before;
    };
    const Recorded recorded([&](RankContext& c) {
      std::array<Tensor, 6> tensors;
      for (Tensor& each : tensors) each = tensor(c);
      std::array<std::set<std::size_t>, kStreams> known;  // by waits of each stream
      std::vector<std::pair<EventId, std::set<std::size_t>>> events;
      for (std::size_t step = 0; step < kLength; ++step) {
        const std::size_t stream = random() % 3;
        const auto id = static_cast<StreamId>(stream);
        auto past = before_of(stream);
        past.insert(known[stream].begin(), known[stream].end());
        switch (random() % 8) {
          case 0:
          case 1:
            events.emplace_back(c.record(id), past);
            break;
          case 2:
          case 3: {
            if (events.empty()) break;
            const auto& [event, done] = events[random() % events.size()];
            c.wait(id, event);
            known[stream].insert(done.begin(), done.end());
            break;
          }
          case 4:
            if (random() % 4 > 0) break;
            c.synchronize(id);
            for (auto& each : known) each.insert(past.begin(), past.end());
            break;
          default: {
            const std::size_t from = random() % 6, to = (from + 1 + random() % 5) % 6;
            copy(c, id, tensors[from], tensors[to]);
            nodes.push_back({stream, past, from, to});
          }
        }
      }
    });
    std::size_t expected = 0;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const Node &a = nodes[i], &b = nodes[j];
        if (a.stream == b.stream || b.before.contains(i)) continue;
        expected += (a.writes == b.reads) + (a.reads == b.writes) + (a.writes == b.writes);
      }
    }
    ASSERT_EQ(recorded.hazards().size(), expected) << "seed " << seed;
    racy_programs += expected > 0;
  }
  EXPECT_GT(racy_programs, 10);
}

using Program = std::function<void(RankContext&)>;

TEST(Trace, CollectivesSayWhatIsInPlace) {
  const Recorded recorded([](RankContext& c) {
    Tensor part = tensor(c, 8), whole = tensor(c, 32);
    const TensorView own = whole.view.flat(8, 8);
    for (const auto& [kind, segment] : {std::pair{CollectiveKind::all_gather, Segment{own, whole}},
                                        {CollectiveKind::all_gather, Segment{part, whole}},
                                        {CollectiveKind::reduce_scatter, Segment{whole, own}},
                                        {CollectiveKind::reduce_scatter, Segment{whole, part}},
                                        {CollectiveKind::all_reduce, Segment{whole, whole}}}) {
      c.collective(kComm, {kind, ReduceOp::sum, Purpose::data, {&segment, 1}});
    }
  });
  std::vector<std::int64_t> in_place;
  for (const TraceEvent& event : recorded.context.trace().events()) {
    if (event.type == EventType::collective) in_place.push_back(event.id);
  }
  EXPECT_EQ(in_place, (std::vector<std::int64_t>{32, 0, 32, 0, 128}));
}

// A little program with one place for every kind of change.
struct Example {
  std::int64_t count = 8;
  DType dtype = DType::f32;
  StreamId stream = kComm;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Purpose purpose = Purpose::data;
  Phase phase = Phase::forward;
  int unit = 1;
  int step = 0;
  bool second_op = true;
  bool swapped = false;
  bool waits = true;
  bool waits_for_first = false;
  bool synchronizes = true;
  std::int64_t padding = 0;  // allocated before, so that addresses differ

  void operator()(RankContext& c) const {
    Tensor pad = tensor(c, padding + 1);
    Tensor x = c.allocate(dtype, Shape{count}, MemoryTag::gradient, {"x"});
    c.scope().step = step;
    ScopeGuard scope(c, phase, unit);
    const EventId first = c.record(kCompute);
    if (swapped) c.run(Axpy{x, x});
    c.run(Fill{x, 1.0});
    if (second_op && !swapped) c.run(Axpy{x, x});
    const EventId second = c.record(kCompute);
    if (waits) c.wait(stream, waits_for_first ? first : second);
    const Segment segment{x, x};
    c.collective(stream, {kind, ReduceOp::sum, purpose, {&segment, 1}});
    if (synchronizes) c.synchronize(stream);
  }
};

TEST(SequenceHash, IgnoresAddressesAndTimings) {
  const Example plain, padded{.padding = 100000};
  const Recorded a(plain), b(padded);
  EXPECT_EQ(a.hash(), b.hash());
  Trace timed = a.context.trace();
  const std::uint64_t before = timed.sequence_hash();
  timed.append({}).timing = {1, 2};
  Trace untimed = a.context.trace();
  untimed.append({});
  EXPECT_EQ(timed.sequence_hash(), untimed.sequence_hash());
  EXPECT_NE(timed.sequence_hash(), before);
}

TEST(SequenceHash, NoticesEveryChangeOfTheProgram) {
  const Example variants[] = {{},
                              {.count = 9},
                              {.dtype = DType::bf16},
                              {.stream = StreamId::copy_in},
                              {.kind = CollectiveKind::broadcast},
                              {.purpose = Purpose::control},
                              {.phase = Phase::backward},
                              {.unit = 2},
                              {.step = 1},
                              {.second_op = false},
                              {.swapped = true},
                              {.waits = false},
                              {.waits_for_first = true},
                              {.synchronizes = false}};
  std::set<std::uint64_t> hashes;
  for (const Example& variant : variants) hashes.insert(Recorded(variant).hash());
  EXPECT_EQ(hashes.size(), std::size(variants));
}

// Timings are written to events while others are appended.
TEST(EventList, AddressesStayAndCopiesAndMovedOnesGoOn) {
  const auto numbered = [](std::int64_t id) {
    TraceEvent event;
    event.id = id;
    return event;
  };
  constexpr std::int64_t kMany = 5000;
  EventList list;
  std::vector<const TraceEvent*> addresses;
  for (std::int64_t i = 0; i < kMany; ++i) addresses.push_back(&list.append(numbered(i)));
  EventList copy = list;
  copy.append(numbered(kMany));
  EXPECT_EQ(list.size(), addresses.size());
  std::size_t at = 0;
  for (const TraceEvent& event : list) EXPECT_EQ(&event, addresses[at++]);
  EXPECT_EQ(copy.end() - copy.begin(), kMany + 1);
  at = 0;
  for (const TraceEvent& event : copy) EXPECT_EQ(event.id, static_cast<std::int64_t>(at++));
  const EventList taken = std::move(list);
  EXPECT_EQ(&taken.back(), addresses.back());
  list.append(numbered(7));  // NOLINT(bugprone-use-after-move): a rank frees what it holds
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(list.front().id, 7);
}

TEST(TraceCounts, OpsAreOpsAndCollectives) {
  const Example three, two{.second_op = false};
  EXPECT_EQ(Recorded(three).context.trace().op_count(), 3);
  EXPECT_EQ(Recorded(two).context.trace().op_count(), 2);
}

}  // namespace
}  // namespace zl
