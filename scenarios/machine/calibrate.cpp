#include "scenarios/machine/calibrate.h"

#include <algorithm>
#include <filesystem>
#include <list>
#include <thread>

#include "core/base/error.h"
#include "core/base/machine_memory.h"
#include "scenarios/files/clusters.h"
#include "scenarios/machine/calibration_jobs.h"
#include "scenarios/machine/time_ops.h"
#include "scenarios/run/cuda_backend.h"
#include "scenarios/run/runner.h"
#include "simulator/calibration.h"
#include "simulator/cluster/find_cluster.h"
#include "simulator/typical_moments.h"

namespace zl {
namespace {

using sim::Moments;

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
                      std::int64_t peak_size, sim::ClusterSpec& machine) {
  const auto world =
      runner.backends().make(backend, {.ranks = 1, .threads_per_rank = machine.shared_cores});
  const bool has_data_sheet = on_gpu && cuda_cluster(1).has_value();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    sim::ComputeRate& rate = machine.device.rates[static_cast<std::size_t>(dtype)];
    const double measured = measured_gemm_peak(*world, dtype, peak_size);
    if (has_data_sheet) {
      rate.efficiency = std::min(1.0, measured / rate.peak);
    } else {
      rate.peak = measured;
    }
  }
}

// Where files are measured: "" for nowhere.
std::string folder_of(const CalibrationOptions& options, bool on_gpu) {
  if (!options.nvme_path.empty() || on_gpu) return options.nvme_path;
  return std::filesystem::temp_directory_path().string();
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// At several moments: all where quiet ones are asked for, since any may have had none.
bool is_repeated(const CalibrationJob& job, Moments moments) {
  return moments == Moments::quiet || !job.style.once;
}

// The runs of one job, each at a moment of its own.
class JobRuns {
 public:
  JobRuns(const CalibrationJob& job, Moments moments) : job_(&job), moments_(moments) {}

  bool is_due() const {
    if (watched_.steps.empty()) return true;
    return is_repeated(*job_, moments_) && !is_settled(watched_, moments_);
  }

  // Traces of one run, the first that of its steps. Memory is short: runs that no further moment
  // can make count are dropped.
  void add(int run, std::list<Trace> traces) {
    watched_.add({&traces.front(), job_->ranks, run, {}, moments_ == Moments::quiet});
    runs_.push_back({run, watched_.steps.size() - 1, std::move(traces)});
    if (moments_ == Moments::quiet || (moments_ == Moments::typical && !is_due())) {
      const std::size_t counts = run_that_counts(watched_, moments_);
      std::erase_if(runs_, [&](const Run& each) { return each.moment != counts; });
    }
  }

  void append_to(std::vector<sim::MeasuredTrace>& measured) const {
    std::vector<double> steps;
    if (moments_ != Moments::all) steps = watched_.steps;
    std::ranges::sort(steps);
    for (const Run& run : runs_) {
      for (const Trace& trace : run.traces) {
        measured.push_back({&trace, job_->ranks, run.number, steps, moments_ == Moments::quiet});
      }
    }
  }

 private:
  struct Run {
    int number;
    std::size_t moment;
    std::list<Trace> traces;
  };

  const CalibrationJob* job_;
  Moments moments_;
  sim::Watched watched_;
  std::vector<Run> runs_;
};

struct Measured {
  std::vector<JobRuns> jobs;
  std::vector<std::size_t> job_of;  // by run

  std::vector<std::size_t> due() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].is_due()) found.push_back(i);
    }
    return found;
  }
};

std::list<Trace> train(const Runner& runner, const CalibrationOptions& options,
                       const CalibrationJob& job) {
  const Scenario scenario = calibration_scenario(job, options.steps);
  std::list<Trace> traces;
  RunHooks hooks;
  hooks.on_trace = [&](const Trace& trace) { traces.push_back(trace); };
  const RunResult result =
      runner.run(scenario, calibration_strategy(job, options.nvme_path), options.backend, hooks);
  if (result.outcome == Outcome::ok) return traces;
  throw Error(ErrorCode::failed, "calibrate: " + scenario.model.name + ": " + result.message);
}

// Where every rank has a GPU of its own, the lines of one rank price the ops of several.
Trace compressed_ops(const Runner& runner, const CalibrationOptions& options,
                     const CalibrationJob& job) {
  const std::int64_t elements = job.shape.hidden * job.shape.hidden;
  const auto world =
      runner.backends().make(options.backend, {.ranks = job.ranks, .threads_per_rank = 1});
  return compressed_ops_trace(*world, elements, options.steps);
}

// Whole passes, so that a machine whose speed drifts is sampled at several moments.
Measured measure(const Runner& runner, const CalibrationOptions& options, bool on_gpu,
                 const std::vector<CalibrationJob>& jobs) {
  const Moments moments = on_gpu ? Moments::all : options.moments;
  const int sure_passes = on_gpu ? 3 : 2;
  const auto repeated = static_cast<int>(
      std::ranges::count_if(jobs, [&](const auto& job) { return is_repeated(job, moments); }));
  Measured measured;
  for (const CalibrationJob& job : jobs) measured.jobs.emplace_back(job, moments);
  std::vector<std::size_t> due = measured.due();
  for (int pass = 0; !due.empty(); ++pass, due = measured.due()) {
    const int first = static_cast<int>(measured.job_of.size());
    const int known =
        first + static_cast<int>(due.size()) + repeated * std::max(0, sure_passes - 1 - pass);
    for (const std::size_t index : due) {
      const CalibrationJob& job = jobs[index];
      const int run = static_cast<int>(measured.job_of.size());
      if (options.progress) options.progress(words_of(job), run, known);
      std::list<Trace> traces = train(runner, options, job);
      if (on_gpu && is_onebit(job.style.optimizer) && job.ranks == 1) {
        traces.push_back(compressed_ops(runner, options, job));
      }
      measured.jobs[index].add(run, std::move(traces));
      measured.job_of.push_back(index);
    }
  }
  return measured;
}

}  // namespace

sim::ClusterSpec calibrate_machine(const CalibrationOptions& asked) {
  const Runner runner;
  const bool on_gpu = static_cast<bool>(runner.backends().capabilities(asked.backend).accelerator);
  CalibrationOptions options = asked;
  options.nvme_path = folder_of(asked, on_gpu);
  const std::vector<CalibrationJob> jobs = calibration_jobs(options, on_gpu, cores());
  const Measured measured = measure(runner, options, on_gpu, jobs);
  std::vector<sim::MeasuredTrace> runs;
  for (const JobRuns& each : measured.jobs) each.append_to(runs);
  sim::ClusterSpec machine = on_gpu ? gpu_machine() : sim::uncalibrated_local(cores());
  machine.calibration = sim::fit(runs, machine, [&](int run, double error) {
    if (options.left_out) options.left_out(words_of(jobs[measured.job_of[run]]), error);
  });
  machine.host_memory = machine_memory();
  write_gemm_peaks(runner, options.backend, on_gpu, calibration_peak_size(options, on_gpu),
                   machine);
  return machine;
}

}  // namespace zl
