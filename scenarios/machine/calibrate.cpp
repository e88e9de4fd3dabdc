#include "scenarios/machine/calibrate.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "core/base/error.h"
#include "core/base/machine_memory.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/model_file.h"
#include "scenarios/machine/time_ops.h"
#include "scenarios/run/cuda_backend.h"
#include "scenarios/run/runner.h"
#include "simulator/calibration.h"
#include "simulator/cluster/find_cluster.h"
#include "simulator/typical_moments.h"

namespace zl {
namespace {

struct TrainingShape {
  std::int64_t hidden, heads, layers, sequence, micro_batch, vocab;
  const char* family = "gpt2";
  bool brief = false;  // trained under few styles: it takes long
  bool rare = false;   // under the rare styles, too
  // Times the steps of others: the kernel moves threads that often sleep from core to core, and
  // keeps them for tenths of a second where a step takes longer or shorter.
  int more_steps = 1;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  bool qk_norm = false;
};

// What a backend is measured with. Shapes spread over the widths that such machines train, none of
// them in the catalogue: narrow to wide, short to long; for processors also, in both families, ones
// that fixed times decide, ones of few tokens and ones whose weights no cache holds (of layers that
// alone would fit, too), of widths that are powers of two (rows of which lie in the same sets of a
// cache) and that are none; of the llamas some whose heads share keys or have norms. Rare ops are
// seen on a few shapes, which hold vectors of a row up to those that no cache holds.
struct CalibrationPlan {
  std::vector<TrainingShape> shapes;
  std::int64_t peak_size;  // of the square GEMM whose rate is the ceiling
  std::vector<int> ranks;  // measured where the caller names none
  const char* precision;   // likewise
  std::size_t in_files;    // shapes, from the first, that go to files where there is a folder
  bool on_cores = true;    // ranks share the cores, which they may outnumber
};
const CalibrationPlan kCpuPlan = {{{128, 4, 3, 192, 2, 320, "gpt2", false, true},
                                   {192, 6, 4, 256, 2, 256},
                                   {320, 10, 3, 256, 2, 384},
                                   {48, 3, 2, 48, 1, 256, "llama", false, false, 24, 1},
                                   {80, 5, 2, 56, 1, 320, "gpt2", false, false, 24},
                                   {224, 7, 3, 64, 1, 512, "gpt2", false, false, 8},
                                   {448, 7, 2, 64, 1, 2048, "llama"},
                                   {512, 8, 2, 64, 1, 2048, "gpt2", false, true},
                                   {1024, 16, 1, 64, 1, 32768, "gpt2", true, true},
                                   {928, 16, 2, 64, 1, 2048, "llama", true, false, 1, 8, true},
                                   {832, 13, 2, 256, 1, 8192, "llama", true},
                                   {528, 12, 12, 64, 1, 2048, "llama", true, false, 1, 4}},
                                  1024,
                                  {1, 2, 4},
                                  "fp32",
                                  3};
const CalibrationPlan kGpuPlan = {
    {{896, 14, 3, 1024, 16, 16384}, {1152, 18, 3, 1024, 8, 32768}, {2304, 36, 2, 2048, 4, 32768}},
    8192,
    {1},
    "bf16",
    1,
    false};
const CalibrationPlan kTinyPlan = {{{32, 2, 1, 16, 1, 48, "gpt2", false, true},
                                    {48, 3, 1, 16, 2, 64, "llama", false, false, 1, 1},
                                    {64, 4, 1, 24, 1, 64}},
                                   64,
                                   {1},
                                   "fp32",
                                   1};

const CalibrationPlan& plan_of(const CalibrationOptions& options, bool on_gpu) {
  if (options.tiny) return kTinyPlan;
  return on_gpu ? kGpuPlan : kCpuPlan;
}

// What the runs must show between them: whole and sharded gradients, gathers, recomputation, and
// streams that overlap; compressed momenta, host copies and updates, and files. The rare ones show
// the ops that only they have.
struct Style {
  const char* name;
  int stage;
  bool once = true;  // at one moment only, which saves minutes
  bool recompute = false;
  OptimizerKind optimizer = OptimizerKind::adamw;
  Tier tier = Tier::device;  // of weights and state
  int least_ranks = 1;
  bool quantized = false, tensor = false;
};
constexpr Style kStyles[] = {
    {"zero-0", 0, false}, {"zero-1", 1, false}, {"zero-2", 2, false}, {"zero-3", 3, false, true}};
constexpr Style kBriefStyles[] = {{"zero-0", 0, false}, {"zero-3", 3, false}};
constexpr Style kOnebit{.name = "1-bit Adam", .stage = 0, .optimizer = OptimizerKind::onebit_adam};
constexpr Style kOnHost{.name = "zero-3 on the host", .stage = 3, .tier = Tier::cpu};
constexpr Style kInFiles{.name = "zero-3 in files", .stage = 3, .tier = Tier::nvme};
constexpr Style kRareStyles[] = {
    {.name = "LAMB", .stage = 0, .optimizer = OptimizerKind::lamb},
    {.name = "1-bit LAMB", .stage = 0, .optimizer = OptimizerKind::onebit_lamb},
    {.name = "0/1 Adam", .stage = 0, .optimizer = OptimizerKind::zero_one_adam},
    {.name = "SGD", .stage = 0, .optimizer = OptimizerKind::sgd},
    {.name = "zero-3 quantized", .stage = 3, .least_ranks = 2, .quantized = true},
    {.name = "tensor parallel", .stage = 0, .least_ranks = 2, .tensor = true}};

std::string name_of(const TrainingShape& shape) {
  return "calibration-" + std::to_string(shape.hidden);
}

ModelConfig training_model(const TrainingShape& shape) {
  return model_from_json({{"name", name_of(shape)},
                          {"family", shape.family},
                          {"layers", shape.layers},
                          {"hidden", shape.hidden},
                          {"heads", shape.heads},
                          {"kv_heads", shape.kv_heads},
                          {"qk_norm", shape.qk_norm},
                          {"vocab", shape.vocab},
                          {"max_sequence", shape.sequence}},
                         "calibrate");
}

void offload(Tier tier, const std::string& folder, std::int64_t sub_group, Strategy& s) {
  s.offload.optimizer = s.offload.parameters = tier;
  s.offload.pipeline_read = s.offload.pipeline_write = true;
  s.offload.max_in_cpu = 0;
  s.offload.sub_group_size = sub_group;
  s.offload.nvme_path = folder;
}

// All steps after the first do the same.
OptimizerConfig optimizer_of(OptimizerKind kind) {
  OptimizerConfig optimizer{.kind = kind};
  if (kind == OptimizerKind::sgd) optimizer.momentum = 0.9;
  if (is_onebit(kind)) optimizer.onebit.freeze_step = optimizer.onebit.var_freeze_step = 1;
  return optimizer;
}

ImportedStrategy training_strategy(const Style& style, const TrainingShape& shape, int ranks,
                                   DType dtype, const std::string& folder) {
  ImportedStrategy imported;
  Strategy& s = imported.strategy;
  s.name = "calibration";
  s.zero.stage = style.stage;
  s.zero.quantized_weights = s.zero.quantized_gradients = style.quantized;
  if (style.tensor) s.tensor.ranks = ranks;
  s.zero.overlap_comm = true;
  s.precision.compute_dtype = dtype;
  s.micro_batch = shape.micro_batch;
  s.zero.reduce_bucket_size = shape.hidden * shape.hidden;
  s.zero.prefetch_bucket_size = s.zero.reduce_bucket_size * 9 / 10;
  s.zero.param_persistence_threshold = 0;
  s.zero.max_reuse_distance = 0;
  s.recompute.mode = style.recompute ? RecomputeMode::full : RecomputeMode::none;
  s.optimizer = optimizer_of(style.optimizer);
  if (style.tier != Tier::device) {
    offload(style.tier, folder, 4 * shape.hidden * shape.hidden, s);
  }
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

void write_gemm_peaks(const Runner& runner, const std::string& backend, bool on_gpu,
                      const CalibrationPlan& plan, sim::ClusterSpec& machine) {
  const auto world =
      runner.backends().make(backend, {.ranks = 1, .threads_per_rank = machine.shared_cores});
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

std::span<const Style> common_styles(const TrainingShape& shape) {
  if (shape.brief) return kBriefStyles;
  return kStyles;
}

std::vector<Style> rare_styles(const TrainingShape& shape, int ranks) {
  std::vector<Style> styles;
  if (!shape.brief) styles.push_back(kOnebit);
  for (const Style& style : kRareStyles) {
    const bool divides = !style.tensor || shape.heads % ranks == 0;
    if (shape.rare && ranks >= style.least_ranks && divides) styles.push_back(style);
  }
  return styles;
}

struct Job {
  int ranks;
  std::string precision;
  TrainingShape shape;
  Style style;
};

std::string words_of(const Job& job) {
  return std::to_string(job.ranks) + " ranks, " + job.precision + ", " + name_of(job.shape) + ", " +
         job.style.name;
}

// Where files are measured: "" for nowhere.
std::string folder_of(const CalibrationOptions& options, bool on_gpu) {
  if (!options.nvme_path.empty() || on_gpu) return options.nvme_path;
  return std::filesystem::temp_directory_path().string();
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// What is asked for, and as many as there are cores where others outnumber them: their prices are
// told from those.
std::vector<int> measured_ranks(const CalibrationPlan& plan, const CalibrationOptions& options) {
  std::vector<int> ranks = options.ranks.empty() ? plan.ranks : options.ranks;
  const bool is_there = std::ranges::find(ranks, cores()) != ranks.end();
  if (plan.on_cores && !is_there && std::ranges::max(ranks) > cores()) {
    ranks.insert(ranks.begin(), cores());
  }
  return ranks;
}

std::vector<Job> jobs_of(const CalibrationPlan& plan, const CalibrationOptions& options,
                         bool in_files) {
  std::vector<std::string> precisions = options.precisions;
  if (precisions.empty()) precisions.emplace_back(plan.precision);
  std::vector<Job> jobs;
  for (const int ranks : measured_ranks(plan, options)) {
    const bool outnumber = plan.on_cores && ranks > cores();  // their steps tell all
    for (const std::string& precision : precisions) {
      for (std::size_t i = 0; i < plan.shapes.size(); ++i) {
        const TrainingShape& shape = plan.shapes[i];
        const auto add = [&](const Style& style) {
          jobs.push_back({ranks, precision, shape, style});
        };
        std::ranges::for_each(common_styles(shape), add);
        if (outnumber) continue;
        std::ranges::for_each(rare_styles(shape, ranks), add);
        if (!shape.brief) add(in_files && i < plan.in_files ? kInFiles : kOnHost);
      }
    }
  }
  return jobs;
}

struct Measured {
  std::deque<Trace> traces;
  std::vector<sim::MeasuredTrace> runs;  // refer to the traces
  std::vector<std::size_t> jobs;         // by run

  void add(const Trace& trace, int ranks, int run) {
    runs.push_back({&traces.emplace_back(trace), ranks, run});
  }
};

void train(const Runner& runner, const CalibrationOptions& options, const std::string& folder,
           const Job& job, int run, Measured& measured) {
  const Scenario scenario =
      training_scenario(job.shape, job.ranks, options.steps * job.shape.more_steps);
  const ImportedStrategy strategy =
      training_strategy(job.style, job.shape, job.ranks, parse_dtype(job.precision), folder);
  RunHooks hooks;
  hooks.on_trace = [&](const Trace& trace) { measured.add(trace, job.ranks, run); };
  const RunResult result = runner.run(scenario, strategy, options.backend, hooks);
  if (result.outcome == Outcome::ok) return;
  throw Error(ErrorCode::failed, "calibrate: " + scenario.model.name + ": " + result.message);
}

// Where every rank has a GPU of its own, the lines of one rank price the ops of several.
void time_compressed_ops(const Runner& runner, const CalibrationOptions& options, const Job& job,
                         int run, Measured& measured) {
  const std::int64_t elements = job.shape.hidden * job.shape.hidden;
  const auto world =
      runner.backends().make(options.backend, {.ranks = job.ranks, .threads_per_rank = 1});
  measured.add(compressed_ops_trace(*world, elements, options.steps), job.ranks, run);
}

// What is asked of the machine: all of its moments (a GPU, which is ours alone), or of a processor,
// which others may share, the typical one or the quietest.
enum class Moments { all, typical, quiet };

Moments moments_of(const CalibrationOptions& options, bool on_gpu) {
  if (on_gpu) return Moments::all;
  return options.quiet ? Moments::quiet : Moments::typical;
}

struct Watched {
  std::vector<double> steps;  // seconds of the typical step, by pass
  double seconds = 0;         // of all steps

  void add(const sim::MeasuredTrace& run) {
    steps.push_back(sim::typical_step(run));
    for (const double step : sim::step_seconds(*run.trace)) seconds += step;
  }
};

int most_passes(Moments moments) { return moments == Moments::quiet ? 6 : 3; }

// What others do lasts for seconds: a quiet moment is one that was found twice, in as many.
bool is_quiet(const Watched& watched) {
  constexpr double kEnough = 5;
  std::vector<double> steps = watched.steps;
  std::ranges::sort(steps);
  return watched.seconds >= kEnough && sim::agree(steps[0], steps[1]);
}

// Typical is the moment in the middle: a third would not move it where the first two agree.
bool is_due(const Job& job, int pass, const Watched& watched, Moments moments) {
  if (pass == 0) return true;
  if (job.style.once) return false;
  if (pass == 1 || moments == Moments::all) return true;
  if (moments == Moments::quiet) return !is_quiet(watched);
  return !sim::agree(watched.steps[0], watched.steps[1]);
}

std::vector<std::size_t> due_jobs(const std::vector<Job>& jobs, int pass,
                                  const std::vector<Watched>& watched, Moments moments) {
  std::vector<std::size_t> due;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (is_due(jobs[i], pass, watched[i], moments)) due.push_back(i);
  }
  return due;
}

// Whole passes, so that a machine whose speed drifts is sampled at several moments.
Measured measure(const Runner& runner, const CalibrationOptions& options, Moments moments,
                 const std::string& folder, const std::vector<Job>& jobs) {
  const auto is_once = [](const Job& job) { return job.style.once; };
  const auto repeated = static_cast<int>(std::ranges::count(jobs, false, is_once));
  const int sure_passes = moments == Moments::all ? most_passes(moments) : 2;
  Measured measured;
  std::vector<Watched> watched(jobs.size());
  int run = 0;
  for (int pass = 0; pass < most_passes(moments); ++pass) {
    const std::vector<std::size_t> due = due_jobs(jobs, pass, watched, moments);
    const int known =
        run + static_cast<int>(due.size()) + repeated * std::max(0, sure_passes - 1 - pass);
    for (const std::size_t index : due) {
      const Job& job = jobs[index];
      if (options.progress) options.progress(words_of(job), run, known);
      train(runner, options, folder, job, run, measured);
      watched[index].add(measured.runs.back());
      if (moments == Moments::all && is_onebit(job.style.optimizer) && job.ranks == 1) {
        time_compressed_ops(runner, options, job, run, measured);
      }
      measured.jobs.push_back(index);
      ++run;
    }
  }
  return measured;
}

}  // namespace

sim::ClusterSpec calibrate_machine(const CalibrationOptions& options) {
  const Runner runner;
  const bool on_gpu =
      static_cast<bool>(runner.backends().capabilities(options.backend).accelerator);
  const CalibrationPlan& plan = plan_of(options, on_gpu);
  const std::string folder = folder_of(options, on_gpu);
  const std::vector<Job> jobs = jobs_of(plan, options, !folder.empty());
  const Moments moments = moments_of(options, on_gpu);
  Measured measured = measure(runner, options, moments, folder, jobs);
  const auto name_of_run = [&](int run) { return words_of(jobs[measured.jobs[run]]); };
  if (moments == Moments::typical) sim::keep_typical(measured.runs, name_of_run);
  if (moments == Moments::quiet) sim::keep_quietest(measured.runs, name_of_run);
  sim::ClusterSpec machine = on_gpu ? gpu_machine() : sim::uncalibrated_local(cores());
  machine.calibration = sim::fit(measured.runs, machine, [&](int run, double error) {
    if (options.left_out) options.left_out(name_of_run(run), error);
  });
  machine.host_memory = machine_memory();
  write_gemm_peaks(runner, options.backend, on_gpu, plan, machine);
  return machine;
}

}  // namespace zl
