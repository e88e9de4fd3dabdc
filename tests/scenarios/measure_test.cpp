#include "scenarios/run/measure.h"

#include <gtest/gtest.h>

#include "core/ops/op.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/replay.h"
#include "scenarios/run/simulate.h"
#include "simulator/cluster/find_cluster.h"

namespace zl {
namespace {

struct Work {
  EventType type;
  StreamId stream;
  Phase phase;
  int step;
  std::int64_t start_ms, end_ms;
};

Trace trace_of(const std::vector<Work>& all) {
  Trace trace;
  for (const Work& work : all) {
    TraceEvent event;
    event.type = work.type;
    event.stream = static_cast<std::uint8_t>(work.stream);
    event.scope = {.phase = work.phase, .unit = 0, .step = work.step};
    event.timing = {1 + work.start_ms * 1'000'000, 1 + work.end_ms * 1'000'000};
    trace.append(event);
  }
  return trace;
}

// What the compute stream waits for is told by what runs meanwhile, not by the stream it waits on:
// a gather that waits for a file is an offload stall.
TEST(Measure, WaitsGoToWhatRanMeanwhile) {
  const Trace trace = trace_of({
      {EventType::op, StreamId::compute, Phase::forward, 1, 0, 50},  // not counted
      {EventType::op, StreamId::compute, Phase::forward, 2, 50, 60},
      {EventType::transfer, StreamId::file_in, Phase::gather, 2, 55, 75},
      {EventType::collective, StreamId::communication, Phase::gather, 2, 75, 80},
      {EventType::op, StreamId::compute, Phase::backward, 2, 82, 90},
      {EventType::op, StreamId::compute, Phase::optimizer, 2, 90, 93},
      {EventType::collective, StreamId::compute, Phase::optimizer, 2, 93, 97},
  });
  RunResult result;
  result.step_seconds = {0.05, 0.047, 0.047};
  write_measured_times(trace, result);
  EXPECT_DOUBLE_EQ(result.step_time.median, 0.047);
  EXPECT_NEAR(result.time.compute, 0.018, 1e-9);
  EXPECT_NEAR(result.time.offload_stall, 0.015, 1e-9);          // 60 to 75
  EXPECT_NEAR(result.time.exposed_communication, 0.009, 1e-9);  // 75 to 80, 93 to 97
  EXPECT_NEAR(result.time.optimizer, 0.003, 1e-9);
}

TEST(Measure, SplitsTheMedianAsTheTracedStepsAreSplit) {
  std::vector<Work> all;
  for (int step = 1; step <= 4; ++step) {
    const std::int64_t begin = 100 * step;
    all.push_back(
        {EventType::op, StreamId::compute, Phase::forward, step, begin, begin + 10 * step});
  }
  RunResult result;
  result.step_seconds = {0.5, 0.1, 0.1, 0.4};  // mean 0.2
  write_measured_times(trace_of(all), result);
  EXPECT_DOUBLE_EQ(result.step_time.median, 0.1);
  EXPECT_NEAR(result.time.compute, (0.020 + 0.030 + 0.040) / 0.6 * 0.1, 1e-9);
  EXPECT_EQ(result.time.exposed_communication, 0);
}

// Two micro-batches are timed, and the last; the four between them took 80 ms.
TEST(Measure, RoundsThatAreNotTimedTookWhatTheTimedOnesDid) {
  const auto append = [](const std::vector<Work>& all, Trace& trace) {
    const Trace more = trace_of(all);
    for (const TraceEvent& event : more.events()) trace.append(event);
  };
  Trace trace;
  append({{EventType::op, StreamId::compute, Phase::forward, 1, 0, 50}}, trace);
  for (const std::int64_t begin : {50, 70}) {
    trace.begin_round();
    append(
        {{EventType::op, StreamId::compute, Phase::forward, 2, begin, begin + 10},
         {EventType::collective, StreamId::communication, Phase::gather, 2, begin + 10, begin + 15},
         {EventType::op, StreamId::compute, Phase::backward, 2, begin + 15, begin + 20}},
        trace);
  }
  trace.repeat_round(4);
  trace.begin_round();
  append({{EventType::op, StreamId::compute, Phase::forward, 2, 170, 180}}, trace);
  trace.end_round();
  append({{EventType::op, StreamId::compute, Phase::optimizer, 2, 180, 190}}, trace);
  RunResult result;
  result.step_seconds = {0.05, 0.14};
  write_measured_times(trace, result);
  EXPECT_NEAR(result.time.compute, 0.03 + 0.01 + 0.06, 1e-9);
  EXPECT_NEAR(result.time.exposed_communication, 0.01 + 0.02, 1e-9);
  EXPECT_NEAR(result.time.optimizer, 0.01, 1e-9);
}

// fp32 alone was calibrated: of bf16 no peak is known, whatever stands in for its rate.
TEST(Measure, MfuIsOfAPeakThatWasMeasured) {
  sim::ClusterSpec machine = sim::uncalibrated_local(2);
  EXPECT_EQ(cluster_peak_flops(machine, DType::f32), 0) << "guessed";
  sim::RankCoefficients entry;
  entry.ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::f32)].samples = 9;
  machine.calibration.emplace().by_ranks = {entry};
  EXPECT_EQ(cluster_peak_flops(machine, DType::f32), machine.device.rate(DType::f32).peak);
  EXPECT_EQ(cluster_peak_flops(machine, DType::bf16), 0);
}

TEST(Measure, APeakThatIsExceededWasNone) {
  const Scenario scenario = load_scenario("gpt2-tiny");
  const Strategy& strategy = scenario.strategies[0].strategy;
  RunResult result;
  result.step_time.median = 1;
  write_rates(scenario, strategy, 1, result);
  const double flops = result.model_flops_per_step;
  EXPECT_GT(flops, 0);
  EXPECT_EQ(result.mfu, 0);
  write_rates(scenario, strategy, 4 * flops, result);
  EXPECT_DOUBLE_EQ(result.mfu, 0.25);
}

TEST(Measure, TheStepTimeLeavesTheFirstStepOut) {
  EXPECT_EQ(step_time_of({}).median, 0);
  EXPECT_EQ(step_time_of({9}).median, 9);
  EXPECT_EQ(step_time_of({9, 2}).median, 2);
  EXPECT_EQ(step_time_of({9, 3, 1}).median, 2);
  const StepTime odd = step_time_of({9, 7, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 7);
}

// A warm-up of long steps must not be in the parts of the median.
TEST(Measure, PredictedPartsAreThoseOfTheMedianStep) {
  constexpr std::int64_t kMillisecond = 1'000'000'000;  // picoseconds
  const auto price = [](int step, std::int64_t compute, std::int64_t waits) {
    return sim::StepPrice{.step = step,
                          .duration = (compute + waits) * kMillisecond,
                          .compute = compute * kMillisecond,
                          .exposed_communication = waits * kMillisecond,
                          .spread = 0.1};
  };
  sim::Timeline timeline;
  timeline.steps = {price(1, 20, 80), price(2, 20, 70), price(3, 20, 10)};
  RunResult result;
  result.step_seconds.resize(6);
  write_predicted_times(timeline, {1, 2, 2, 3, 3, 3}, result);
  EXPECT_DOUBLE_EQ(result.step_time.median, 0.030);
  EXPECT_NEAR(result.time.compute, 0.020, 1e-12);
  EXPECT_NEAR(result.time.exposed_communication, 0.010, 1e-12);
  EXPECT_LT(result.step_time_low, 0.030);
  EXPECT_GT(result.step_time_high, 0.030);
  // Between a step of 90 ms and one of 30 ms: split as the nearer one, up to the median.
  result.step_seconds.resize(5);
  write_predicted_times(timeline, {1, 2, 2, 3, 3}, result);
  EXPECT_DOUBLE_EQ(result.step_time.median, 0.060);
  EXPECT_NEAR(result.time.compute + result.time.exposed_communication, 0.060, 1e-12);
}

TEST(TimedTrace, KeepsWhatACollectiveWaited) {
  Trace trace;
  TraceEvent& event = trace.append({});
  event.type = EventType::collective;
  event.timing = {5000, 9000, 7000};
  const Trace timed = timed_trace(trace, {{1'000'000, 5'000'000}});
  EXPECT_EQ(timed.events().begin()->timing, (Timing{1000, 5000, 3000}));
}

}  // namespace
}  // namespace zl
