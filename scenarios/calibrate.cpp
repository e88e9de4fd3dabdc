#include "scenarios/calibrate.h"

#include <algorithm>
#include <deque>
#include <thread>

#include "scenarios/runner.h"
#include "simulator/calibration.h"
#include "simulator/cluster/find_cluster.h"

namespace zl {
namespace {

struct Shape3 {
  std::int64_t hidden, heads, layers, sequence, micro_batch, vocab;
};

// Spread over the widths that small machines train, none of them in the catalogue: narrow to wide,
// short to long.
constexpr Shape3 kShapes[] = {
    {128, 4, 3, 192, 2, 320}, {192, 6, 4, 256, 2, 256}, {320, 10, 3, 256, 2, 384}};

// What the runs must show between them: whole and sharded gradients, gathers, recomputation, and
// streams that overlap.
struct Style {
  int stage;
  bool overlap, recompute;
};
constexpr Style kStyles[] = {
    {0, true, false}, {1, false, false}, {2, true, false}, {3, true, true}};

ModelConfig training_model(const Shape3& shape) {
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

ImportedStrategy training_strategy(const Style& style, const Shape3& shape, DType dtype) {
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

Scenario training_scenario(const Shape3& shape, int ranks, std::int64_t steps) {
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

}  // namespace

sim::ClusterSpec calibrate_local(const CalibrationOptions& options) {
  const Runner runner;
  std::deque<Trace> traces;
  std::vector<sim::MeasuredTrace> measured;
  const int total = static_cast<int>(options.ranks.size() * options.precisions.size() *
                                     std::size(kShapes) * std::size(kStyles));
  int done = 0;
  for (const int ranks : options.ranks) {
    for (const std::string& precision : options.precisions) {
      for (const Shape3& shape : kShapes) {
        for (const Style& style : kStyles) {
          const Scenario scenario = training_scenario(shape, ranks, options.steps);
          if (options.progress) {
            options.progress(std::to_string(ranks) + " ranks, " + precision + ", " +
                                 scenario.model.name + ", zero-" + std::to_string(style.stage),
                             done, total);
          }
          RunHooks hooks;
          hooks.on_trace = [&](const Trace& trace) { traces.push_back(trace); };
          runner.run(scenario, training_strategy(style, shape, parse_dtype(precision)), "cpu",
                     hooks);
          measured.push_back({&traces.back(), ranks, done++});
        }
      }
    }
  }
  sim::ClusterSpec machine =
      sim::uncalibrated_local(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  machine.calibration = sim::fit(measured, machine);
  return machine;
}

}  // namespace zl
