#include "scenarios/machine/calibrate.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/ops/op.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/machine/calibration_jobs.h"
#include "scenarios/run/simulate.h"

namespace zl {
namespace {

TEST(Calibrate, TrainsLlamasToo) {
  const sim::ClusterSpec machine = calibrate_machine({.ranks = {1}, .steps = 2, .tiny = true});
  const auto samples_of = [&](std::size_t kind) {
    return machine.calibration->by_ranks.at(0)
        .ops[kind][static_cast<std::size_t>(DType::f32)]
        .samples;
  };
  EXPECT_GT(samples_of(kOpKind<Rope>), 0);
  EXPECT_GT(samples_of(kOpKind<NormForward>), 0);
}

// Names of the ops of `strategy` on two ranks that have no line of their own.
std::set<std::string> ops_without_line(const std::string& strategy, int tensor,
                                       const sim::RankCoefficients& known) {
  Scenario scenario = load_scenario("gpt2-tiny");
  scenario.run.ranks = 2;
  scenario.run.steps = 40;
  const int data_ranks = 2 / tensor;
  Strategy s = load_strategy(strategy, {.ranks = data_ranks,
                                        .model = &scenario.model,
                                        .precision = DType::f32,
                                        .micro_batch = 1,
                                        .steps = 40})
                   .strategy;
  s.tensor.ranks = tensor;
  if (strategy == "zero-3") s.zero.quantized_weights = s.zero.quantized_gradients = true;
  const Recording recording = record_run(scenario, s, {}, program_options(scenario));
  std::map<std::string, std::set<int>> steps;  // by op without a line
  for (const TraceEvent& event : recording.trace.events()) {
    if (event.type != EventType::op || event.scope.step == sim::StepPrice::kSetup) continue;
    const bool on_host = event.stream == static_cast<std::uint8_t>(StreamId::host);
    const auto& lines = on_host ? known.host_ops : known.ops;
    const auto dtype = static_cast<std::size_t>(event.dtype);
    if (lines[event.kind][dtype].samples == 0) {
      steps[op_name(event.kind)].insert(event.scope.step);
    }
  }
  std::set<std::string> names;
  for (const auto& [name, when] : steps) {
    if (when.size() > 1) names.insert(name);  // 1-bit LAMB freezes once
  }
  return names;
}

// An op that no run of the calibration has is priced by a guess.
TEST(Calibrate, KnowsTheOpsOfEveryStrategy) {
  const sim::ClusterSpec machine = calibrate_machine({.ranks = {2}, .steps = 4, .tiny = true});
  const sim::RankCoefficients& known = machine.calibration->by_ranks.at(0);
  int strategies = 0;
  for (const std::string& name : catalog_names("strategies")) {
    if (name.starts_with("pp4") || name.starts_with("tp8") || name.starts_with("hsdp")) continue;
    EXPECT_EQ(ops_without_line(name, 1, known), std::set<std::string>{}) << name;
    ++strategies;
  }
  EXPECT_GE(strategies, 12);
  EXPECT_EQ(ops_without_line("zero-0", 2, known), std::set<std::string>{});
}

// State in files of one request and of many more than are under way at a time.
TEST(Calibrate, MeasuresSmallFilesAndLargeOnes) {
  std::set<std::int64_t> requests;
  for (const CalibrationJob& job :
       calibration_jobs({.ranks = {1}, .nvme_path = "/disk"}, false, 2)) {
    const OffloadConfig offload = calibration_strategy(job, "/disk").strategy.offload;
    if (offload.optimizer != Tier::nvme) continue;
    const std::int64_t state =
        3 * static_cast<std::int64_t>(sizeof(float)) * offload.sub_group_size;
    requests.insert((state + offload.aio.block_size - 1) / offload.aio.block_size);
  }
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_LE(*requests.begin(), 4);
  EXPECT_GE(*requests.rbegin(), 8 * AioConfig{}.queue_depth);
}

TEST(Calibrate, RunsAtTwoMomentsAndAThirdWhereTheyDisagree) {
  std::map<std::string, int> runs;
  int before = 0, all = 0;
  calibrate_machine({.ranks = {1},
                     .steps = 2,
                     .tiny = true,
                     .progress = [&](const std::string& what, int done, int total) {
                       EXPECT_EQ(done, before++);
                       EXPECT_GE(total, all);
                       EXPECT_LT(done, total);
                       all = total;
                       ++runs[what];
                     }});
  EXPECT_EQ(before, all);
  ASSERT_EQ(runs.size(), 3u * 6 + 4);
  for (const auto& [what, count] : runs) {
    const bool once = !what.ends_with("zero-0") && !what.ends_with("zero-1") &&
                      !what.ends_with("zero-2") && !what.ends_with("zero-3") &&
                      !what.ends_with("in files");
    EXPECT_GE(count, once ? 1 : 2) << what;
    EXPECT_LE(count, once ? 1 : 3) << what;
  }
}

// Toys take milliseconds: too little to tell a quiet moment.
TEST(Calibrate, LooksForQuietMomentsSixTimes) {
  std::map<std::string, int> runs;
  const auto count = [&](const std::string& what, int, int) { ++runs[what]; };
  const sim::ClusterSpec machine = calibrate_machine(
      {.ranks = {1}, .steps = 4, .moments = sim::Moments::quiet, .tiny = true, .progress = count});
  EXPECT_TRUE(machine.calibration->quiet);
  EXPECT_EQ(runs.at("1 ranks, fp32, calibration-32, zero-0"), 6);
  EXPECT_EQ(runs.at("1 ranks, fp32, calibration-32, LAMB"), 6) << "rare ones, too";
}

}  // namespace
}  // namespace zl
