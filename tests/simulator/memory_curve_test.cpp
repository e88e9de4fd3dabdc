#include "simulator/memory_curve.h"

#include <gtest/gtest.h>

#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMillisecond;

class Memory : public test::TraceBuilder {
 public:
  void allocate(MemoryTag tag, std::int64_t bytes, std::int64_t address, const char* what,
                MemorySpace space = MemorySpace::device) {
    TraceEvent& event = add(EventType::allocate, tag, bytes, address, space);
    event.what = what;
  }
  void free(MemoryTag tag, std::int64_t bytes, std::int64_t address) {
    add(EventType::free, tag, bytes, address, MemorySpace::device);
  }

 private:
  TraceEvent& add(EventType type, MemoryTag tag, std::int64_t bytes, std::int64_t address,
                  MemorySpace space) {
    TraceEvent event;
    event.type = type;
    event.kind = static_cast<std::uint8_t>(tag);
    event.bytes_written = bytes;
    event.id = address;
    event.space = space;
    event.scope = scope;
    return trace.append(event);
  }
};

Memory example() {
  Memory memory;
  memory.allocate(MemoryTag::parameter, 100, 1, "weights");
  memory.op(kMain, 2);
  memory.allocate(MemoryTag::activation, 40, 2, "qkv");
  memory.allocate(MemoryTag::activation, 40, 3, "qkv");
  memory.allocate(MemoryTag::staging, 7, 9, "tokens", MemorySpace::host);
  memory.op(kMain, 3);
  memory.free(MemoryTag::activation, 40, 2);
  memory.allocate(MemoryTag::gradient, 30, 2, "gradients");
  return memory;
}

TEST(MemoryCurve, StepsWhereTheComputeStreamGetsToThem) {
  const Memory memory = example();
  const Timeline timeline = price(memory.trace, test::plain_cluster());
  const auto curve = memory_over_time(memory.trace, timeline.events, MemorySpace::device);
  ASSERT_EQ(curve.size(), 5u);
  const std::vector<std::int64_t> totals{100, 140, 180, 140, 170};
  const std::vector<std::int64_t> milliseconds{0, 2, 2, 5, 5};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].total(), totals[i]) << i;
    EXPECT_EQ(curve[i].time, milliseconds[i] * kMillisecond) << i;
  }
  EXPECT_EQ(peak_point(curve), 2);
  EXPECT_EQ(peak_point({}), -1);
  EXPECT_EQ(peak_event(memory.trace, MemorySpace::device), curve[2].event);
  EXPECT_EQ(peak_event({}, MemorySpace::device), -1);
  EXPECT_EQ(memory_over_time(memory.trace, timeline.events, MemorySpace::host).size(), 1u);
}

TEST(MemoryCurve, LiveBlocksAreGroupedAndReusedAddressesCountOnce) {
  const Memory memory = example();
  const auto at_peak = live_after(memory.trace, 3, MemorySpace::device);
  ASSERT_EQ(at_peak.size(), 2u);
  EXPECT_STREQ(at_peak[0].what, "weights");
  EXPECT_STREQ(at_peak[1].what, "qkv");
  EXPECT_EQ(at_peak[1].bytes, 80);
  EXPECT_EQ(at_peak[1].count, 2);
  const auto last = static_cast<std::int32_t>(memory.trace.events().size()) - 1;
  std::int64_t total = 0;
  for (const LiveBlock& block : live_after(memory.trace, last, MemorySpace::device)) {
    total += block.bytes;
  }
  EXPECT_EQ(total, 170);
}

TEST(MemoryCurve, MeasuredTimesStartAtZero) {
  Memory memory = example();
  Trace measured;
  std::int64_t now = 5000;
  for (TraceEvent event : memory.trace.events()) {
    if (event.type == EventType::op) {
      event.timing = {now, now + 10};
      now += 25;
    }
    measured.append(event);
  }
  const auto times = measured_times(measured);
  EXPECT_EQ(times[1].start, 0);
  EXPECT_EQ(times[1].end, 10'000);
  EXPECT_EQ(times[5].start, 25'000);
  EXPECT_EQ(times[5].end, 35'000);
}

}  // namespace
}  // namespace zl::sim
