// `zerolab export` from the command line: the files agree with what `zerolab run` says.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/cli/program.h"
#include "tests/results/unpickle.h"

namespace zl::cli_test {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json result_of(const Home& home, const std::string& strategy) {
  const Output run = zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", strategy,
                                    "--no-db", "-o", "json"});
  EXPECT_EQ(run.code, 0) << run.err;
  return Json::parse(run.out)["results"][0];
}

std::vector<Json> events_of(const Home& home, std::vector<std::string> arguments) {
  const std::string file = home.path("trace.json");
  arguments.insert(arguments.begin(), {"export", "tiny-gpt2"});
  arguments.insert(arguments.end(), {"--perfetto", file});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, 0) << output.err;
  return Json::parse(contents(file)).at("traceEvents").get<std::vector<Json>>();
}

double highest_counter(const std::vector<Json>& events, int process) {
  double most = 0;
  for (const Json& event : events) {
    if (event["pid"] != process || event["name"] != "device memory") continue;
    most = std::max(most, event["args"]["bytes"].get<double>());
  }
  return most;
}

// Complete slices of one track may lie in each other, or apart; readers drop those that do neither.
void expect_no_dropped_slices(const std::vector<Json>& events) {
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> tracks;
  for (const Json& event : events) {
    if (event["ph"] != "X") continue;
    const auto nanoseconds = [&](const char* key) {
      return std::llround(event[key].get<double>() * 1000);
    };
    // As readers sort them: by begin, the longer first.
    tracks[{event["pid"], event["tid"]}].emplace_back(nanoseconds("ts"),
                                                      -(nanoseconds("ts") + nanoseconds("dur")));
  }
  EXPECT_FALSE(tracks.empty());
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    std::vector<std::int64_t> open;  // ends of the slices around the next one
    int dropped = 0;
    for (const auto& [begin, end] : slices) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty() && -end > open.back()) ++dropped;
      open.push_back(-end);
    }
    EXPECT_EQ(dropped, 0) << "of process " << track.first << ", track " << track.second;
  }
}

TEST(ExportCommand, NoSliceOfATrackOverlapsAnother) {
  const Home home;
  const std::string file = home.path("node.json");
  const Output node = zerolab(home, {"export", "llama3-8b-node", "--perfetto", file});
  ASSERT_EQ(node.code, 0) << node.err;
  expect_no_dropped_slices(Json::parse(contents(file)).at("traceEvents"));
  expect_no_dropped_slices(events_of(home, {"--strategy", "zero-1,zero-2,zero-3", "--backend",
                                            "cpu", "--ranks", "2", "--steps", "4"}));
}

TEST(ExportCommand, TheTraceHasTheStepTimeAndThePeakOfTheRun) {
  const Home home;
  const auto events = events_of(home, {"--strategy", "zero-1,zero-3"});
  int process = 0;
  for (const char* strategy : {"zero-1", "zero-3"}) {
    const Json result = result_of(home, strategy);
    EXPECT_EQ(highest_counter(events, ++process), result["peak_bytes"]["device"]["total"]);
    double begin = 0, last = 0;
    for (const Json& event : events) {
      if (event["pid"] != process) continue;
      if (event["ph"] == "b") begin = event["ts"];
      if (event["ph"] == "e") last = event["ts"].get<double>() - begin;
    }
    // A step's first op may start after the step does, by what issuing it takes.
    const double median = result["step_time_seconds"]["median"];
    EXPECT_NEAR(last * 1e-6, median, median * 0.02);
  }
}

TEST(ExportCommand, ARealRunHasItsOwnTimes) {
  const Home home;
  const auto events = events_of(home, {"--strategy", "zero-2", "--backend", "cpu"});
  EXPECT_EQ(highest_counter(events, 1), result_of(home, "zero-2")["peak_bytes"]["device"]["total"]);
  std::map<int, double> end;  // of the last slice of a stream
  for (const Json& event : events) {
    if (event["ph"] != "X" || event["tid"] == 0) continue;
    EXPECT_GE(event["ts"].get<double>(), end[event["tid"]]) << "slices of a stream overlap";
    end[event["tid"]] = event["ts"].get<double>() + event["dur"].get<double>() - 1e-3;
  }
  EXPECT_GE(end.size(), 2u);
}

TEST(ExportCommand, TheSnapshotPeaksWhereTheRunDoes) {
  const Home home;
  const std::string file = home.path("memory.pickle");
  ASSERT_EQ(
      zerolab(home, {"export", "tiny-gpt2", "--strategy", "zero-3", "--memory-snapshot", file})
          .code,
      0);
  const test::Pickled snapshot = test::unpickle(contents(file));
  std::int64_t now = 0, peak = 0;
  std::map<std::int64_t, std::int64_t> live;
  for (const test::Pickled& event : snapshot.at("device_traces").list.at(0).list) {
    const std::string& action = event.at("action").text;
    const std::int64_t address = event.at("addr").number, size = event.at("size").number;
    if (action == "alloc") {
      EXPECT_TRUE(live.emplace(address, size).second);
      now += size;
    } else if (action == "free_completed") {
      EXPECT_EQ(live[address], size);
      live.erase(address);
      now -= size;
    }
    peak = std::max(peak, now);
  }
  EXPECT_EQ(peak, result_of(home, "zero-3")["peak_bytes"]["device"]["total"]);
  for (const test::Pickled& segment : snapshot.at("segments").list) {
    for (const test::Pickled& each : segment.at("blocks").list) {
      if (each.at("state").text == "active_allocated") live.erase(each.at("address").number);
    }
  }
  EXPECT_TRUE(live.empty()) << "what is live at the end is in the segments";
}

TEST(ExportCommand, PythonReadsTheSnapshot) {
  if (std::system("python3 -c pass 2>/dev/null") != 0) GTEST_SKIP() << "there is no python3";
  const Home home;
  const std::string file = home.path("memory.pickle");
  ASSERT_EQ(
      zerolab(home, {"export", "tiny-llama", "--strategy", "zero-2", "--memory-snapshot", file})
          .code,
      0);
  const std::string script = std::string(ZL_SOURCE_DIR) + "/tests/results/check_snapshot.py";
  EXPECT_EQ(std::system(("python3 '" + script + "' '" + file + "' >/dev/null").c_str()), 0);
}

TEST(ExportCommand, WhatDoesNotFitIsTracedWithAWarning) {
  const Home home;
  const std::string file = home.path("t.json");
  const Output output = zerolab(home, {"export", "tiny-gpt2", "--strategy", "zero-0",
                                       "--device-memory", "1MiB", "--perfetto", file});
  EXPECT_EQ(output.code, 0);
  EXPECT_CONTAINS(output.err, "zero-0 does not fit");
  const Output real = zerolab(home, {"export", "tiny-gpt2", "--strategy", "zero-0", "--backend",
                                     "cpu", "--device-memory", "1MiB", "--perfetto", file});
  EXPECT_EQ(real.code, 4) << real.err;
}

TEST(ExportCommand, WrongRequestsSayWhatToGive) {
  const Home home;
  const std::string file = home.path("out");
  EXPECT_CONTAINS(refused(home, {"export", "tiny-gpt2"}, 2), "--perfetto FILE");
  EXPECT_CONTAINS(refused(home, {"export", "tiny-gpt2", "--memory-snapshot", file}, 2), "zero-3");
  refused(home, {"export", "tiny-gpt2", "--backend", "cpu,sim", "--perfetto", file}, 2);
  refused(home, {"export", "nothing", "--perfetto", file}, 3);
  EXPECT_CONTAINS(refused(home, {"export", "tiny-gpt2", "--perfetto", home.path("no/f")}, 1),
                  "no/f");
}

}  // namespace
}  // namespace zl::cli_test
