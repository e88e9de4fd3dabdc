// Perfetto traces and memory snapshots of a small trace made by hand.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/device/communicator.h"
#include "core/device/device.h"
#include "results/memory_snapshot.h"
#include "results/perfetto.h"
#include "tests/results/unpickle.h"

namespace zl::test {
namespace {

using Json = nlohmann::json;

TraceEvent block(EventType type, std::int64_t address, std::int64_t size, MemoryTag tag,
                 std::int64_t time_ns) {
  TraceEvent event;
  event.type = type;
  event.id = address;
  event.bytes_written = size;
  event.kind = static_cast<std::uint8_t>(tag);
  event.what = "a \"block\"";
  event.scope = {.phase = Phase::forward, .unit = 3, .step = 1};
  event.timing = {time_ns, time_ns};
  return event;
}

TraceEvent work(EventType type, StreamId stream, std::int64_t start, std::int64_t end) {
  TraceEvent event;
  event.type = type;
  event.stream = static_cast<std::uint8_t>(stream);
  event.kind =
      type == EventType::collective ? static_cast<std::uint8_t>(CollectiveKind::all_gather) : 0;
  event.scope = {.phase = Phase::gather, .unit = 2, .step = 1};
  event.wire_bytes = 77;
  event.timing = {start, end};
  return event;
}

TraceEvent edge(EventType type, StreamId stream, std::int64_t id) {
  TraceEvent event;
  event.type = type;
  event.stream = static_cast<std::uint8_t>(stream);
  event.id = id;
  return event;
}

// A gather that an op waits for; three blocks in two address ranges, one of them left at the end.
Trace small_trace() {
  Trace trace;
  trace.append(block(EventType::allocate, 4096, 100, MemoryTag::parameter, 0));
  trace.append(block(EventType::allocate, 4196, 50, MemoryTag::activation, 0));
  trace.append(work(EventType::collective, StreamId::communication, 1000, 3500));
  trace.append(edge(EventType::record, StreamId::communication, 9));
  trace.append(edge(EventType::wait, StreamId::compute, 9));
  trace.append(work(EventType::op, StreamId::compute, 3500, 5250));
  trace.append(block(EventType::allocate, 1LL << 40, 1000, MemoryTag::activation, 5250));
  trace.append(block(EventType::free, 4196, 50, MemoryTag::activation, 5250));
  trace.append(work(EventType::op, StreamId::compute, 5250, 6000));
  trace.append(block(EventType::free, 1LL << 40, 1000, MemoryTag::activation, 6000));
  return trace;
}

Json events_of(const Trace& trace, const std::string& name = "zero-3") {
  const std::vector<NamedTrace> named{{name, &trace}};
  return Json::parse(perfetto_json(named)).at("traceEvents");
}

std::vector<Json> of_type(const Json& events, const std::string& type) {
  std::vector<Json> found;
  for (const Json& event : events) {
    if (event.at("ph") == type) found.push_back(event);
  }
  return found;
}

TEST(Perfetto, SlicesAreInMicrosecondsOnTheTrackOfTheirStream) {
  const Json events = events_of(small_trace());
  std::map<std::pair<int, int>, std::string> tracks;
  for (const Json& event : of_type(events, "M")) {
    if (event["name"] == "thread_name") {
      tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
    }
  }
  const auto slices = of_type(events, "X");
  ASSERT_EQ(slices.size(), 3u) << "a collective and two ops";
  EXPECT_EQ(slices[0]["ts"], 1.0);
  EXPECT_EQ(slices[0]["dur"], 2.5);
  EXPECT_EQ(slices[0]["name"], "all_gather");
  EXPECT_EQ(slices[0]["args"]["wire_bytes"], 77);
  const auto track = [&](const Json& slice) { return tracks.at({slice["pid"], slice["tid"]}); };
  EXPECT_EQ(track(slices[0]), "communication");
  EXPECT_EQ(track(slices[1]), "compute");
}

TEST(Perfetto, ACollectiveSaysHowLongItWaitedForItsRanks) {
  Trace trace;
  trace.append(work(EventType::collective, StreamId::communication, 1000, 3500));
  trace.append(work(EventType::collective, StreamId::communication, 4000, 6000)).timing.met_ns =
      5250;
  const auto slices = of_type(events_of(trace), "X");
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_FALSE(slices[0]["args"].contains("waited_us")) << "nobody tells";
  EXPECT_EQ(slices[1]["args"]["waited_us"], 1.25);
}

TEST(Perfetto, WhatIsHeldOnceSaysHowOftenItCame) {
  Trace trace;
  trace.append(work(EventType::op, StreamId::compute, 1000, 2000));
  trace.begin_round();
  trace.append(work(EventType::op, StreamId::compute, 2000, 3000));
  trace.repeat_round(11);
  trace.append(work(EventType::op, StreamId::compute, 14000, 15000));
  const auto slices = of_type(events_of(trace), "X");
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_FALSE(slices[0]["args"].contains("times"));
  EXPECT_EQ(slices[1]["args"]["times"], 12);
  EXPECT_FALSE(slices[2]["args"].contains("times"));
}

// Slices of one track that overlap without lying in each other are dropped by readers.
TEST(Perfetto, StepsThatOverlapAreAsynchronousSlices) {
  Trace trace;
  trace.append(work(EventType::op, StreamId::compute, 1000, 6000));
  TraceEvent early = work(EventType::collective, StreamId::communication, 4000, 9000);
  early.scope.step = 2;
  trace.append(early);
  const Json events = events_of(trace);
  const auto begins = of_type(events, "b"), ends = of_type(events, "e");
  ASSERT_EQ(begins.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  const double times[][2] = {{1.0, 6.0}, {4.0, 9.0}};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(begins[i]["name"], "step " + std::to_string(i + 1));
    for (const char* key : {"name", "id", "cat", "pid"}) EXPECT_EQ(begins[i][key], ends[i][key]);
    EXPECT_EQ(begins[i]["ts"], times[i][0]);
    EXPECT_EQ(ends[i]["ts"], times[i][1]);
  }
  EXPECT_NE(begins[0]["id"], begins[1]["id"]);
}

TEST(Perfetto, AnArrowLeadsFromTheCauseToWhatWaited) {
  const Json events = events_of(small_trace());
  const auto from = of_type(events, "s"), to = of_type(events, "f");
  ASSERT_EQ(from.size(), 1u);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(from[0]["id"], to[0]["id"]);
  const auto slices = of_type(events, "X");
  EXPECT_EQ(from[0]["tid"], slices[0]["tid"]);
  EXPECT_EQ(from[0]["ts"], slices[0]["ts"]);
  EXPECT_EQ(to[0]["tid"], slices[1]["tid"]);
  EXPECT_EQ(to[0]["ts"], slices[1]["ts"]);
}

TEST(Perfetto, CountersAddUp) {
  std::map<std::string, std::vector<std::int64_t>> counters;
  for (const Json& event : of_type(events_of(small_trace()), "C")) {
    counters[event["name"]].push_back(event["args"]["bytes"]);
  }
  EXPECT_EQ(counters["device memory"], (std::vector<std::int64_t>{100, 150, 1150, 1100, 100}));
  EXPECT_EQ(counters["device memory: activation"], (std::vector<std::int64_t>{50, 1050, 1000, 0}));
  EXPECT_EQ(counters["device memory: parameter"], std::vector<std::int64_t>{100});
}

TEST(Perfetto, TracesAreProcessesWithAnyName) {
  const Trace first = small_trace(), second;
  const std::vector<NamedTrace> named{{"a \"name\"\n\xff", &first}, {"other", &second}};
  const Json events = Json::parse(perfetto_json(named)).at("traceEvents");
  std::map<int, std::string> names;
  for (const Json& event : of_type(events, "M")) {
    if (event["name"] == "process_name") names[event["pid"]] = event["args"]["name"];
  }
  EXPECT_EQ(names.at(1), "a \"name\"\n\xef\xbf\xbd");
  EXPECT_EQ(names.at(2), "other");
  EXPECT_TRUE(Json::parse(perfetto_json({})).at("traceEvents").empty());
}

TEST(Perfetto, AStageHasATrackOfItsMicroBatches) {
  Trace trace;
  trace.append(work(EventType::op, StreamId::compute, 1000, 2000));
  const StagePass passes[] = {{Phase::forward, 1, 0, 0, {1000, 2000}},
                              {Phase::weight_gradient, 1, 3, 1, {2000, 5000}}};
  const NamedTrace named{"stage 1", &trace, passes};
  const Json json = Json::parse(perfetto_json({&named, 1}));
  std::vector<std::string> names;
  for (const Json& event : json["traceEvents"]) {
    if (!event.contains("args") || !event["args"].contains("micro")) continue;
    names.push_back(event["name"]);
    EXPECT_NE(event["tid"], 1) << "not among the operations";
    EXPECT_EQ(event["dur"], event["args"]["micro"] == 3 ? 3.0 : 1.0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"forward 0", "weight_gradient 3"}));
}

// The receive waits from 500 on for what is sent at 2000.
TEST(Perfetto, MessagesAreArrowsBetweenProcesses) {
  Trace first, second;
  first.append(work(EventType::op, StreamId::compute, 1000, 2000));
  first.append(work(EventType::message, StreamId::communication, 2000, 4000));
  second.append(work(EventType::message, StreamId::communication, 500, 4000));
  second.append(work(EventType::message, StreamId::communication, 4000, 5000));
  first.append(work(EventType::message, StreamId::communication, 4500, 6000));
  const SentMessage there[] = {{1, 1, 0}}, back[] = {{-1, 1, 2}};
  const std::vector<NamedTrace> named{{"stage 0", &first, {}, there},
                                      {"stage 1", &second, {}, back}};
  const Json events = Json::parse(perfetto_json(named)).at("traceEvents");
  const auto starts = of_type(events, "s"), ends = of_type(events, "f");
  ASSERT_EQ(starts.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  const int from[] = {1, 2}, to[] = {2, 1};
  const double sent[] = {2.0, 4.0}, arrived[] = {2.0, 4.5};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
    EXPECT_EQ(starts[i]["pid"], from[i]);
    EXPECT_EQ(ends[i]["pid"], to[i]);
    EXPECT_EQ(starts[i]["ts"], sent[i]);
    EXPECT_EQ(ends[i]["ts"], arrived[i]) << "within both slices";
    EXPECT_EQ(ends[i]["bp"], "e");
  }
  EXPECT_NE(starts[0]["id"], starts[1]["id"]);
  EXPECT_EQ(events.back()["ph"], "f") << "behind all slices";
}

TEST(MemorySnapshot, EveryStageIsADevice) {
  Trace first, second;
  first.append(block(EventType::allocate, 4096, 512, MemoryTag::gradient, 10));
  second.append(block(EventType::allocate, 4096, 1024, MemoryTag::gradient, 20));
  const Trace* ranks[] = {&first, &second};
  const Pickled snapshot = unpickle(memory_snapshot(ranks));
  ASSERT_EQ(snapshot.at("device_traces").list.size(), 2U);
  ASSERT_EQ(snapshot.at("segments").list.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const Pickled& segment = snapshot.at("segments").list.at(static_cast<std::size_t>(i));
    EXPECT_EQ(segment.at("device").number, i);
    EXPECT_EQ(segment.at("total_size").number, i == 0 ? 512 : 1024);
  }
}

TEST(MemorySnapshot, EventsAreTheBlocksInOrder) {
  const Pickled snapshot = unpickle(memory_snapshot(small_trace()));
  const auto& events = snapshot.at("device_traces").list.at(0).list;
  std::vector<std::string> actions;
  for (const Pickled& event : events) actions.push_back(event.at("action").text);
  EXPECT_EQ(actions, (std::vector<std::string>{"segment_alloc", "segment_alloc", "alloc", "alloc",
                                               "alloc", "free_requested", "free_completed",
                                               "free_requested", "free_completed"}));
  EXPECT_EQ(events[3].at("addr").number, 4196);
  EXPECT_EQ(events[3].at("size").number, 50);
  EXPECT_EQ(events[3].at("category").text, "activation");
  const Pickled& frame = events[3].at("frames").list.at(0);
  EXPECT_EQ(frame.at("filename").text, "step 1, forward");
  EXPECT_EQ(frame.at("line").number, 3);
  EXPECT_EQ(frame.at("name").text, "activation 'a \"block\"'");
  EXPECT_EQ(events[4].at("addr").number, 1LL << 40);
  EXPECT_EQ(events[4].at("time_us").number, 5);
}

TEST(MemorySnapshot, SegmentsAreTiledByTheirBlocks) {
  const Pickled snapshot = unpickle(memory_snapshot(small_trace()));
  const auto& segments = snapshot.at("segments").list;
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].at("address").number, 4096);
  EXPECT_EQ(segments[0].at("total_size").number, 150);
  EXPECT_EQ(segments[0].at("active_size").number, 100);
  const auto& blocks = segments[0].at("blocks").list;
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].at("state").text, "active_allocated");
  EXPECT_EQ(blocks[0].at("size").number, 100);
  EXPECT_EQ(blocks[1].at("state").text, "inactive");
  EXPECT_EQ(blocks[1].at("address").number, 4196);
  EXPECT_EQ(segments[1].at("active_size").number, 0);
}

TEST(MemorySnapshot, OtherSpacesAreLeftOut) {
  Trace trace;
  TraceEvent host = block(EventType::allocate, 64, 10, MemoryTag::optimizer, 0);
  host.space = MemorySpace::pinned_host;
  trace.append(host);
  const Pickled snapshot = unpickle(memory_snapshot(trace));
  EXPECT_TRUE(snapshot.at("device_traces").list.at(0).list.empty());
  EXPECT_TRUE(snapshot.at("segments").list.empty());
}

}  // namespace
}  // namespace zl::test
