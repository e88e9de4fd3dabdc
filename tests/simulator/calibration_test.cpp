#include "simulator/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <random>

#include "core/base/error.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "simulator/cost/price.h"
#include "simulator/error_bar.h"
#include "simulator/timeline.h"
#include "simulator/typical_moments.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kWire;
using test::plain_cluster;
using test::TraceBuilder;

// A machine whose prices are known, and what its clock would show: the timeline of those prices,
// with noise on every event.
struct Machine {
  ClusterSpec cluster = plain_cluster(4);
  std::deque<TraceBuilder> programs;  // MeasuredTrace refers to them

  Machine() {
    cluster.compute_is_host = true;
    cluster.shared_cores = 2;
    RankCoefficients entry;
    entry.ranks = 4;
    entry.ops[kOpKind<Axpy>][1] = {2e-5, 4e-12, 1e-10, 0, 1};
    entry.ops[kOpKind<Gemm>][1] = {5e-6, 1e-11, 0, 0, 1};
    entry.collectives[2][1] = {8e-5, 3e-5, 5e-10, 0, 1};
    entry.routes[static_cast<std::size_t>(Route::file_to_host)] = {1e-4, 0, 4e-12, 0, 1};
    entry.seconds_per_event = 3e-6;
    entry.seconds_per_step = 4e-4;
    cluster.calibration = Calibration{{entry}, 0.6, 0, 1};
  }

  // Wider models have a larger `size`; the collective of each layer may overlap its ops.
  MeasuredTrace run(int number, double size, bool overlap, double noise) {
    TraceBuilder& builder = programs.emplace_back();
    std::int64_t id = 0;
    for (int step = 1; step <= 6; ++step) {
      for (int layer = 0; layer < 8; ++layer) {
        builder.scope = {.phase = Phase::forward, .unit = 0, .step = step};
        TraceEvent& axpy = builder.op(kMain, size * (1 + layer % 3));
        axpy.bytes_read = static_cast<std::int64_t>(2e7 * size * (layer % 2 + 1));
        builder.op(kMain, size * (2 + layer)).kind = kOpKind<Gemm>;
        const StreamId stream = overlap ? kWire : kMain;
        builder.collective(stream, CollectiveKind::all_gather,
                           static_cast<std::int64_t>(1e6 * size * (1 + layer)), 4, 1 + layer % 3);
        builder.record(stream, id);
        builder.op(kMain, size).kind = kOpKind<Gemm>;
        builder.wait(kMain, id++);
      }
    }
    stamp(builder, noise, static_cast<unsigned>(number));
    return {&builder.trace, 4, number};
  }

  // Weights of each layer come from a file beside its ops.
  MeasuredTrace run_with_files(int number, double size) {
    TraceBuilder& builder = programs.emplace_back();
    std::int64_t id = 0;
    for (int step = 1; step <= 6; ++step) {
      for (int layer = 0; layer < 8; ++layer) {
        builder.scope = {.phase = Phase::forward, .unit = 0, .step = step};
        TraceEvent& read = builder.copy(StreamId::file_in,
                                        static_cast<std::int64_t>(1e6 * size * (1 + layer % 4)));
        read.type = EventType::transfer;
        read.kind = static_cast<std::uint8_t>(Route::file_to_host);
        builder.record(StreamId::file_in, id);
        builder.op(kMain, size * (2 + layer)).kind = kOpKind<Gemm>;
        builder.wait(kMain, id++);
      }
    }
    stamp(builder, 0, static_cast<unsigned>(number));
    return {&builder.trace, 4, number};
  }

 private:
  // Noise stretches the time axis of each event alone; starts keep the order.
  void stamp(TraceBuilder& builder, double noise, unsigned seed) {
    const Timeline timeline = price(builder.trace, cluster);
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(1.0, noise);
    double shift = 0;  // what earlier inline events took longer than planned
    Trace stamped;
    std::size_t index = 0;
    for (TraceEvent event : builder.trace.events()) {
      const EventTime time = timeline.events[index++];
      const auto length = static_cast<double>(time.end - time.start) / 1000;
      const double taken = length * std::max(0.1, normal(random));
      const double start = 1e9 + shift + static_cast<double>(time.start) / 1000;
      event.timing.start_ns = std::llround(start);
      event.timing.end_ns = std::llround(start + taken);
      if (event.stream == 0) shift += taken - length;
      stamped.append(event);
    }
    builder.trace = stamped;
  }
};

TEST(Calibration, RecoversKnownCoefficientsUnderNoise) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 6; ++i) runs.push_back(machine.run(i, 0.3 + 0.25 * i, false, 0.05));
  const Calibration fitted = fit(runs, machine.cluster);
  ASSERT_EQ(fitted.by_ranks.size(), 1u);
  const RankCoefficients& truth = machine.cluster.calibration->by_ranks[0];
  const RankCoefficients& found = fitted.by_ranks[0];
  EXPECT_NEAR(found.ops[kOpKind<Axpy>][1].per_unit, 4e-12, 0.1 * 4e-12);
  EXPECT_NEAR(found.ops[kOpKind<Axpy>][1].per_byte, 1e-10, 0.2 * 1e-10);
  EXPECT_NEAR(found.ops[kOpKind<Gemm>][1].per_unit, 1e-11, 0.05 * 1e-11);
  const LinearCost& gather = found.collectives[2][1];
  EXPECT_NEAR(gather.per_byte, truth.collectives[2][1].per_byte, 0.1 * 5e-10);
  EXPECT_NEAR(found.seconds_per_event, 3e-6, 0.05e-6);
  EXPECT_NEAR(found.seconds_per_step, 4e-4, 0.1e-4);
  EXPECT_EQ(fitted.runs, 6);
  EXPECT_GT(fitted.step_error, 0);
  EXPECT_LT(fitted.step_error, 0.03);
  EXPECT_GT(fitted.own_error, 0);
  EXPECT_LE(fitted.own_error, 1.1 * fitted.step_error) << "what is shared is left out";
}

TEST(Calibration, NamesTheErrorOfEachRunThatIsLeftOut) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(machine.run(10 + i, 0.5 + 0.3 * i, false, 0.05));
  std::map<int, double> errors;
  const Calibration fitted =
      fit(runs, machine.cluster, [&](int run, double error) { errors[run] = error; });
  ASSERT_EQ(errors.size(), 4u);
  std::vector<double> logarithms;
  for (const auto& [run, error] : errors) logarithms.push_back(std::log1p(error));
  EXPECT_EQ(errors.begin()->first, 10);
  EXPECT_NEAR(fitted.step_error, bar_of(logarithms), 1e-12);
  EXPECT_GT(fitted.step_error, 0);
}

TEST(Calibration, ARunThatIsLeftOutIsJudgedAtAllOfItsMoments) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(machine.run(i, 0.5 + 0.3 * i, false, 0.01));
    const double step = typical_step(runs.back());
    runs.back().moments = {step, step};
  }
  const Calibration calm = fit(runs, machine.cluster);
  const double step = typical_step(runs[2]);
  runs[2].moments = {step, step, 1.5 * step};
  const Calibration fitted = fit(runs, machine.cluster);
  EXPECT_LT(calm.step_error, 0.02);
  EXPECT_NEAR(kNineInTen * fitted.step_error, std::log(1.5), kNineInTen * calm.step_error);
  EXPECT_EQ(fitted.own_error, calm.own_error) << "of the moments in the middle";
  EXPECT_EQ(fitted.by_ranks, calm.by_ranks) << "prices are of these, too";
}

TEST(Calibration, ARunOfOneMomentWhereOthersHadSeveralIsNotJudged) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(machine.run(i, 0.5 + 0.3 * i, false, 0.01));
  for (int i = 0; i < 4; ++i) runs[i].moments.assign(2 + i % 2, typical_step(runs[i]));
  machine.cluster.calibration->by_ranks[0].ops[kOpKind<Gemm>][1].per_unit *= 2;  // a neighbour came
  runs.push_back(machine.run(4, 0.7, false, 0.01));
  std::vector<int> judged;
  const auto note = [&](int run, double) { judged.push_back(run); };
  const double error = fit(runs, machine.cluster, note).step_error;
  EXPECT_EQ(judged, (std::vector<int>{0, 1, 2, 3}));
  runs.back().moments.assign(2, typical_step(runs.back()));
  EXPECT_GT(fit(runs, machine.cluster).step_error, 2 * error);
}

TEST(Calibration, OfQuietRunsSaysSo) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(machine.run(i, 0.5 + 0.3 * i, false, 0.01));
  EXPECT_FALSE(fit(runs, machine.cluster).quiet);
  for (MeasuredTrace& each : runs) each.quiet = true;
  EXPECT_TRUE(fit(runs, machine.cluster).quiet);
}

TEST(Calibration, FindsTheOverlapLoss) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(machine.run(i, 0.5 + 0.3 * i, false, 0));
  for (int i = 4; i < 6; ++i) runs.push_back(machine.run(i, 0.1 * i, true, 0));
  const Calibration fitted = fit(runs, machine.cluster);
  EXPECT_NEAR(fitted.overlap_loss, 0.6, 0.051);
  EXPECT_LT(fitted.step_error, 0.02);
}

// A disk takes less of the cores than what else overlaps.
TEST(Calibration, FilesHaveAnOverlapLossOfTheirOwn) {
  Machine machine;
  machine.cluster.calibration->file_overlap_loss = 0.2;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(machine.run(i, 0.5 + 0.3 * i, i >= 2, 0));
  EXPECT_EQ(fit(runs, machine.cluster).file_overlap_loss, std::nullopt) << "no run has files";
  for (int i = 4; i < 8; ++i) runs.push_back(machine.run_with_files(i, 0.2 * i));
  const Calibration fitted = fit(runs, machine.cluster);
  EXPECT_NEAR(fitted.overlap_loss, 0.6, 0.051);
  EXPECT_NEAR(fitted.file_overlap_loss.value_or(1), 0.2, 0.101);
}

TEST(Calibration, ARankAloneTellsTheOverlapLossWhereItHasAStreamForIt) {
  for (const int cores : {0, 2}) {  // a GPU; a processor, where it is the uncalibrated one
    Machine machine;
    machine.cluster.shared_cores = cores;
    machine.cluster.overlap_loss = 0.25;
    machine.cluster.devices = machine.cluster.calibration->by_ranks.front().ranks = 1;
    std::vector<MeasuredTrace> runs;
    for (int i = 0; i < 6; ++i) runs.push_back(machine.run(i, 0.5 + 0.3 * i, i >= 3, 0));
    for (MeasuredTrace& each : runs) each.ranks = 1;
    const Calibration fitted = fit(runs, machine.cluster);
    EXPECT_NEAR(fitted.overlap_loss, cores == 0 ? 0.6 : 0.25, 0.051) << cores;
  }
}

TEST(Calibration, PredictsARunItHasNotSeen) {
  Machine machine;
  std::vector<MeasuredTrace> runs;
  for (int i = 0; i < 6; ++i) runs.push_back(machine.run(i, 0.3 + 0.25 * i, i % 2 == 0, 0.1));
  ClusterSpec calibrated = machine.cluster;
  calibrated.calibration = fit(runs, machine.cluster);
  const MeasuredTrace other = machine.run(99, 2.2, true, 0.1);
  EXPECT_LT(std::abs(step_error(other, calibrated)), 0.05);
  // Another process reads the same numbers.
  EXPECT_EQ(parse_cluster(cluster_json(calibrated), "local.json").calibration->own_error,
            calibrated.calibration->own_error);
  const ClusterSpec again = parse_cluster(cluster_json(calibrated), "local.json");
  EXPECT_EQ(price(*other.trace, again).total, price(*other.trace, calibrated).total);
  // The error bar is that of the held-out runs.
  EXPECT_EQ(price(*other.trace, again).steps[0].spread, calibrated.calibration->step_error);
}

TEST(Calibration, MeansNotMedians) {
  // One op in ten is pre-empted and takes eleven times as long.
  TraceBuilder builder;
  for (int step = 1; step <= 3; ++step) {
    builder.scope.step = step;
    for (int i = 0; i < 10; ++i) builder.measured_op(i == 4 ? 11'000 : 1'000);
  }
  const Calibration fitted = fit({{&builder.trace, 1, 0}}, plain_cluster());
  const LinearCost& line = fitted.by_ranks[0].ops[kOpKind<Axpy>][1];
  EXPECT_NEAR(line.seconds(1e9, 0), 2e-6, 1e-12);
  EXPECT_EQ(line.samples, 20);  // the first step warms up
  EXPECT_NEAR(step_error({&builder.trace, 1, 0},
                         [&] {
                           ClusterSpec cluster = plain_cluster();
                           cluster.calibration = fitted;
                           return cluster;
                         }()),
              0, 1e-9);
}

TEST(Calibration, EachNumberOfRanksHasItsOwnLines) {
  Machine machine;
  std::vector<MeasuredTrace> runs = {machine.run(0, 0.5, false, 0), machine.run(1, 1, false, 0)};
  runs[0].ranks = 2;
  const Calibration fitted = fit(runs, machine.cluster);
  ASSERT_EQ(fitted.by_ranks.size(), 2u);
  EXPECT_EQ(fitted.by_ranks[0].ranks, 2);
  EXPECT_EQ(fitted.nearest(1).ranks, 2);
  EXPECT_EQ(fitted.nearest(100).ranks, 4);
}

TEST(Calibration, RefusesTracesWithoutTwoSteps) {
  TraceBuilder builder;
  builder.op(kMain, 1);
  EXPECT_THROW(fit({{&builder.trace, 1, 0}}, plain_cluster()), Error);
  EXPECT_THROW(fit({}, plain_cluster()), Error);
}

}  // namespace
}  // namespace zl::sim
