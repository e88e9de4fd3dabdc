#include "scenarios/calibrate.h"

#include <algorithm>
#include <deque>
#include <thread>

#include "backends/cpu/world.h"
#include "core/device/rank_context.h"
#include "scenarios/runner.h"
#include "simulator/calibration.h"
#include "simulator/cluster/find_cluster.h"

namespace zl {
namespace {

struct TrainingShape {
  std::int64_t hidden, heads, layers, sequence, micro_batch, vocab;
};

// Spread over the widths that small machines train, none of them in the catalogue: narrow to wide,
// short to long.
constexpr TrainingShape kShapes[] = {
    {128, 4, 3, 192, 2, 320}, {192, 6, 4, 256, 2, 256}, {320, 10, 3, 256, 2, 384}};

// What the runs must show between them: whole and sharded gradients, gathers, recomputation, and
// streams that overlap.
struct Style {
  int stage;
  bool overlap, recompute;
};
constexpr int kPasses = 2;
constexpr Style kStyles[] = {{0, true, false}, {1, true, false}, {2, true, false}, {3, true, true}};

ModelConfig training_model(const TrainingShape& shape) {
  ModelConfig model;
  model.name = "calibration-" + std::to_string(shape.hidden);
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.heads = shape.heads;
  model.vocab = shape.vocab;
  model.max_sequence = shape.sequence;
  model.complete();
  return model;
}

ImportedStrategy training_strategy(const Style& style, const TrainingShape& shape, DType dtype) {
  ImportedStrategy imported;
  Strategy& s = imported.strategy;
  s.name = "calibration";
  s.zero_stage = style.stage;
  s.overlap_comm = style.overlap;
  s.compute_dtype = dtype;
  s.micro_batch = shape.micro_batch;
  s.reduce_bucket_size = shape.hidden * shape.hidden;
  s.prefetch_bucket_size = s.reduce_bucket_size * 9 / 10;
  s.param_persistence_threshold = 0;
  s.max_reuse_distance = 0;
  s.recompute.mode = style.recompute ? RecomputeMode::full : RecomputeMode::none;
  return imported;
}

Scenario training_scenario(const TrainingShape& shape, int ranks, std::int64_t steps) {
  Scenario scenario;
  scenario.name = "calibration";
  scenario.model = training_model(shape);
  scenario.cluster = "local";
  scenario.run.ranks = ranks;
  scenario.run.steps = steps;
  scenario.run.sequence_length = shape.sequence;
  scenario.run.data = "synthetic";
  return scenario;
}

// FLOP/s of the largest GEMM rate seen with every core at work: the ceiling that MFU is a share of.
double measured_gemm_peak(int cores, DType dtype) {
  constexpr std::int64_t kSize = 1024;
  constexpr int kRepeats = 12;
  double best = 0;
  const auto world = cpu::make_world({1, cores});
  world->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    const auto matrix = [&] {
      Tensor tensor =
          context.allocate(dtype, {kSize, kSize}, MemoryTag::workspace, {"peak measurement"});
      context.run(RandomNormal{tensor.view.flat(), 1.0, {}, 0});
      return tensor;
    };
    const Tensor a = matrix(), b = matrix(), c = matrix();
    for (int i = 0; i < kRepeats; ++i) context.run(Gemm{a, b, c, {}, false, true, false});
    for (const TraceEvent& event : context.trace().events()) {
      const auto nanoseconds = static_cast<double>(event.timing.end_ns - event.timing.start_ns);
      if (event.type == EventType::op && event.kind == kOpKind<Gemm> && nanoseconds > 0) {
        best = std::max(best, event.flops / nanoseconds * 1e9);
      }
    }
  });
  return best;
}

}  // namespace

sim::ClusterSpec calibrate_local(const CalibrationOptions& options) {
  const Runner runner;
  std::deque<Trace> traces;
  std::vector<sim::MeasuredTrace> measured;
  const int total = static_cast<int>(options.ranks.size() * options.precisions.size() *
                                     std::size(kShapes) * std::size(kStyles)) *
                    kPasses;
  int done = 0;
  const auto measure = [&](int ranks, const std::string& precision, const TrainingShape& shape,
                           const Style& style) {
    const Scenario scenario = training_scenario(shape, ranks, options.steps);
    if (options.progress) {
      options.progress(std::to_string(ranks) + " ranks, " + precision + ", " + scenario.model.name +
                           ", zero-" + std::to_string(style.stage),
                       done, total);
    }
    RunHooks hooks;
    hooks.on_trace = [&](const Trace& trace) { traces.push_back(trace); };
    runner.run(scenario, training_strategy(style, shape, parse_dtype(precision)), "cpu", hooks);
    measured.push_back({&traces.back(), ranks, done++});
  };
  // Whole passes, so that a machine whose speed drifts is sampled at several moments for every
  // line.
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const int ranks : options.ranks) {
      for (const std::string& precision : options.precisions) {
        for (const TrainingShape& shape : kShapes) {
          for (const Style& style : kStyles) measure(ranks, precision, shape, style);
        }
      }
    }
  }
  sim::ClusterSpec machine =
      sim::uncalibrated_local(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  machine.calibration = sim::fit(measured, machine);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    machine.device.rates[static_cast<std::size_t>(dtype)].peak =
        measured_gemm_peak(machine.shared_cores, dtype);
  }
  return machine;
}

}  // namespace zl
