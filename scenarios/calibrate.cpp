#include "scenarios/calibrate.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <thread>

#include "core/device/rank_context.h"
#include "scenarios/cuda_backend.h"
#include "scenarios/runner.h"
#include "simulator/calibration.h"
#include "simulator/cluster/find_cluster.h"

namespace zl {
namespace {

struct TrainingShape {
  std::int64_t hidden, heads, layers, sequence, micro_batch, vocab;
};

// What a backend is measured with. Shapes spread over the widths that such machines train, none of
// them in the catalogue: narrow to wide, short to long.
struct Plan {
  TrainingShape shapes[3];
  std::int64_t peak_size;  // of the square GEMM whose rate is the ceiling
  std::vector<int> ranks;  // measured where the caller names none
  const char* precision;   // likewise
};
const Plan kCpuPlan = {
    {{128, 4, 3, 192, 2, 320}, {192, 6, 4, 256, 2, 256}, {320, 10, 3, 256, 2, 384}},
    1024,
    {1, 2, 4},
    "fp32"};
const Plan kGpuPlan = {
    {{896, 14, 3, 1024, 16, 16384}, {1152, 18, 3, 1024, 8, 32768}, {2304, 36, 2, 2048, 4, 32768}},
    8192,
    {1},
    "bf16"};
const Plan kTinyPlan = {
    {{32, 2, 1, 16, 1, 48}, {48, 3, 1, 16, 2, 64}, {64, 4, 1, 24, 1, 64}}, 64, {1}, "fp32"};

const Plan& plan_of(const CalibrationOptions& options) {
  if (options.tiny) return kTinyPlan;
  return options.backend == "cuda" ? kGpuPlan : kCpuPlan;
}

// What the runs must show between them: whole and sharded gradients, gathers, recomputation, and
// streams that overlap; on a processor also compressed momenta, and files, host copies and updates.
struct Style {
  const char* name;
  int stage;
  bool recompute = false, onebit = false, files = false;
};
constexpr int kPasses = 2;
constexpr Style kStyles[] = {{"zero-0", 0}, {"zero-1", 1}, {"zero-2", 2}, {"zero-3", 3, true}};
constexpr Style kCpuStyles[] = {{"1-bit Adam", 0, false, true},
                                {"zero-3 in files", 3, false, false, true}};

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

void offload_to_files(const std::string& folder, std::int64_t sub_group, Strategy& s) {
  s.offload.optimizer = s.offload.parameters = Tier::nvme;
  s.offload.pipeline_read = s.offload.pipeline_write = true;
  s.offload.max_in_cpu = 0;
  s.offload.sub_group_size = sub_group;
  s.offload.nvme_path = folder;
}

ImportedStrategy training_strategy(const Style& style, const TrainingShape& shape, DType dtype,
                                   const std::string& folder) {
  ImportedStrategy imported;
  Strategy& s = imported.strategy;
  s.name = "calibration";
  s.zero_stage = style.stage;
  s.overlap_comm = true;
  s.compute_dtype = dtype;
  s.micro_batch = shape.micro_batch;
  s.reduce_bucket_size = shape.hidden * shape.hidden;
  s.prefetch_bucket_size = s.reduce_bucket_size * 9 / 10;
  s.param_persistence_threshold = 0;
  s.max_reuse_distance = 0;
  s.recompute.mode = style.recompute ? RecomputeMode::full : RecomputeMode::none;
  if (style.onebit) {
    s.optimizer.kind = OptimizerKind::onebit_adam;
    s.optimizer.onebit.freeze_step = 1;
  }
  if (style.files) offload_to_files(folder, 4 * shape.hidden * shape.hidden, s);
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

// FLOP/s of the largest GEMM rate seen with the whole machine at work: the ceiling that MFU is a
// share of.
double measured_gemm_peak(World& world, DType dtype, std::int64_t size) {
  constexpr int kRepeats = 12;
  double best = 0;
  world.run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    const auto matrix = [&] {
      Tensor tensor =
          context.allocate(dtype, {size, size}, MemoryTag::workspace, {"peak measurement"});
      context.run(RandomNormal{tensor.view.flat(), 1.0, {}, 0});
      return tensor;
    };
    const Tensor a = matrix(), b = matrix(), c = matrix();
    for (int i = 0; i < kRepeats; ++i) context.run(Gemm{a, b, c, {}, false, true, false});
    context.synchronize(StreamId::compute);
    for (const TraceEvent& event : context.trace().events()) {
      const auto nanoseconds = static_cast<double>(event.timing.end_ns - event.timing.start_ns);
      if (event.type == EventType::op && event.kind == kOpKind<Gemm> && nanoseconds > 0) {
        best = std::max(best, event.flops / nanoseconds * 1e9);
      }
    }
  });
  return best;
}

// The GPU's entry of the catalogue; for one that is not there the oldest supported, whose rates are
// then replaced by measured ones.
sim::ClusterSpec gpu_machine() {
  sim::ClusterSpec machine = cuda_cluster(1).value_or(load_cluster("a100-40"));
  const DeviceProperties device = cuda_device_properties(1);
  machine.name = "local-cuda";
  machine.device.name = device.name;
  machine.device.memory = device.memory;
  machine.device.workspace = device.workspace;
  return machine;
}

void write_gemm_peaks(const Runner& runner, bool on_gpu, const Plan& plan,
                      sim::ClusterSpec& machine) {
  const auto world = runner.backends().make(on_gpu ? "cuda" : "cpu", {1, machine.shared_cores});
  const bool has_data_sheet = on_gpu && cuda_cluster(1).has_value();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    sim::ComputeRate& rate = machine.device.rates[static_cast<std::size_t>(dtype)];
    const double measured = measured_gemm_peak(*world, dtype, plan.peak_size);
    if (has_data_sheet) {
      rate.efficiency = std::min(1.0, measured / rate.peak);
    } else {
      rate.peak = measured;
    }
  }
}

struct Job {
  int ranks;
  std::string precision;
  TrainingShape shape;
  Style style;
};

// Whole passes, so that a machine whose speed drifts is sampled at several moments for every line.
std::vector<Job> jobs_of(const Plan& plan, const CalibrationOptions& options) {
  const std::vector<int>& all_ranks = options.ranks.empty() ? plan.ranks : options.ranks;
  std::vector<std::string> precisions = options.precisions;
  if (precisions.empty()) precisions.emplace_back(plan.precision);
  std::vector<Job> jobs;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const int ranks : all_ranks) {
      for (const std::string& precision : precisions) {
        for (const TrainingShape& shape : plan.shapes) {
          for (const Style& style : kStyles) jobs.push_back({ranks, precision, shape, style});
          if (options.backend != "cpu" || pass > 0) continue;
          for (const Style& style : kCpuStyles) jobs.push_back({ranks, precision, shape, style});
        }
      }
    }
  }
  return jobs;
}

}  // namespace

sim::ClusterSpec calibrate_machine(const CalibrationOptions& options) {
  const Runner runner;
  const bool on_gpu = options.backend == "cuda";
  const Plan& plan = plan_of(options);
  std::deque<Trace> traces;
  std::vector<sim::MeasuredTrace> measured;
  const std::vector<Job> jobs = jobs_of(plan, options);
  const std::string folder = options.nvme_path.empty()
                                 ? std::filesystem::temp_directory_path().string()
                                 : options.nvme_path;
  RunHooks hooks;
  hooks.on_trace = [&](const Trace& trace) { traces.push_back(trace); };
  for (const auto& [ranks, precision, shape, style] : jobs) {
    const Scenario scenario = training_scenario(shape, ranks, options.steps);
    const auto done = static_cast<int>(measured.size());
    if (options.progress) {
      options.progress(std::to_string(ranks) + " ranks, " + precision + ", " + scenario.model.name +
                           ", " + style.name,
                       done, static_cast<int>(jobs.size()));
    }
    const ImportedStrategy strategy =
        training_strategy(style, shape, parse_dtype(precision), folder);
    const RunResult result = runner.run(scenario, strategy, options.backend, hooks);
    if (result.outcome != Outcome::ok) {
      throw Error(ErrorCode::failed, "calibrate: " + scenario.model.name + ": " + result.message);
    }
    measured.push_back({&traces.back(), ranks, done});
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  sim::ClusterSpec machine = on_gpu ? gpu_machine() : sim::uncalibrated_local(cores);
  machine.calibration = sim::fit(measured, machine);
  write_gemm_peaks(runner, on_gpu, plan, machine);
  return machine;
}

}  // namespace zl
