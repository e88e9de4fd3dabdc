#include "scenarios/run/simulate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/bytes.h"
#include "core/model/parameters.h"
#include "core/pipeline/pipeline_rounds.h"
#include "core/rank/pool.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/measure.h"
#include "scenarios/run/stage_runs.h"
#include "scenarios/run/training_data.h"
#include "simulator/cluster/software.h"
#include "simulator/storage.h"
#include "simulator/world.h"

namespace zl {
namespace {

// What the recording device answers for these is no prediction.
void clear_answers(RunResult& result) {
  for (auto values : {&RunResult::loss, &RunResult::grad_norm, &RunResult::learning_rate,
                      &RunResult::loss_scale}) {
    (result.*values).clear();
  }
}

// Elements of the parameters that each rank of the pipeline holds, all of its tensor group alike.
sim::StageCounts counts_of_ranks(const ModelConfig& model, const Strategy& strategy) {
  const TensorShard shard{.ranks = static_cast<int>(strategy.tensor.ranks)};
  sim::StageCounts counts;
  for (int rank = 0; rank < static_cast<int>(strategy.pipeline.ranks); ++rank) {
    counts.push_back(parameters_of(model, strategy, rank, shard).counts());
  }
  return counts;
}

// What a rank offloads in a forward it waits for in the backward, as many rounds later as it has
// micro-batches on their way.
std::shared_ptr<const PipelinePlan> plan_to_record(const Strategy& strategy) {
  const auto plan = plan_pipeline(strategy.pipeline, strategy.gradient_accumulation);
  return std::make_shared<PipelinePlan>(
      fold(*plan, kSteadyPipelineRounds, strategy.offload.activations));
}

}  // namespace

ProgramOptions program_options(const Scenario& scenario) {
  ProgramOptions options;
  options.steps = scenario.run.steps;
  options.sequence_length = scenario.run.sequence_length;
  options.seed = scenario.run.seed;
  options.device_memory = scenario.run.device_memory;
  options.host_memory = scenario.run.host_memory;
  return options;
}

namespace {

// The programs of some ranks, to be run on the recording device one after the other.
class RanksToRecord {
 public:
  RanksToRecord(const Scenario& scenario, const Strategy& strategy, DeviceProperties device,
                ProgramOptions options, RecordedRanks recorded)
      : scenario_(scenario), strategy_(strategy), options_(std::move(options)) {
    options_.device_memory = std::exchange(device.memory, 0);
    if (options_.recorded_steps == 0) options_.recorded_steps = kSteadySteps;
    options_.recorded_rounds = steady_rounds(strategy);
    options_.make_storage = [](const Strategy&, int) { return std::make_unique<sim::Storage>(); };
    options_.pipeline = plan_to_record(strategy);
    const auto ranks = static_cast<int>(scenario.run.ranks);
    const Mesh mesh = mesh_of(strategy, ranks);
    classes_ = recorded == RecordedRanks::stages
                   ? sim::stages_of(mesh)
                   : sim::classes_of(mesh, counts_of_ranks(scenario.model, strategy));
    sim::SimOptions sim{.answers = {}, .device = std::move(device), .mesh = mesh, .recorded = {}};
    sim.answers.loss = std::log(static_cast<double>(scenario.model.vocab));
    for (const sim::RankClass& each : classes_) sim.recorded.push_back(each.representative());
    world_ = sim::make_world({.ranks = ranks, .threads_per_rank = 1}, sim);
  }

  // take(class, run): `run` runs the program of the class.
  template <class Take>
  void for_each(const Take& take) {
    const auto data = data_to_record(scenario_.model, scenario_.run.seed);
    std::size_t next = 0;
    world_->run([&](RankHandle handle) {
      take(classes_[next++],
           [&] { return run_rank(handle, scenario_.model, strategy_, *data, options_); });
    });
  }

 private:
  const Scenario& scenario_;
  const Strategy& strategy_;
  ProgramOptions options_;
  std::vector<sim::RankClass> classes_;
  std::unique_ptr<World> world_;
};

}  // namespace

std::vector<bool> ranks_within(const Scenario& scenario, const Strategy& strategy,
                               const DeviceProperties& device, const ProgramOptions& options) {
  std::vector<bool> within;
  RanksToRecord ranks(scenario, strategy, device, options, RecordedRanks::stages);
  ranks.for_each([&](const sim::RankClass&, const auto& run) {
    try {
      run();
      within.push_back(true);
    } catch (const OutOfMemory&) {
      within.push_back(false);
    }
  });
  return within;
}

Recording record_run(const Scenario& scenario, const Strategy& strategy, DeviceProperties device,
                     ProgramOptions options, RecordedRanks recorded) {
  std::vector<ClassRecording> recordings;
  RanksToRecord ranks(scenario, strategy, std::move(device), std::move(options), recorded);
  ranks.for_each([&](const sim::RankClass& each, const auto& run) {
    RankOutcome outcome = run();
    clear_answers(outcome.result);
    recordings.push_back(
        {each, std::move(outcome.result), std::move(outcome.trace), std::move(outcome.stand_ins)});
  });
  const auto fullest = std::max_element(
      recordings.begin(), recordings.end(), [](const ClassRecording& a, const ClassRecording& b) {
        return a.books.peak_device.total() < b.books.peak_device.total();
      });
  Recording recording{std::move(*fullest), strategy};
  recordings.erase(fullest);
  recording.others = std::move(recordings);
  return recording;
}

namespace {

// Without a pipeline the result says it all.
std::vector<StageResult> stage_results(const Recording& recording,
                                       const std::vector<sim::Timeline>& timelines) {
  std::vector<StageResult> stages;
  if (recording.strategy.pipeline.ranks == 1) return stages;
  for (const StageRun& run : stage_runs(recording, timelines)) {
    if (run.stage < static_cast<int>(stages.size())) continue;  // another class of it
    RunResult timed;
    timed.step_seconds.resize(run.recording->stand_ins.size());
    write_predicted_times(*run.timeline, run.recording->stand_ins, timed);
    const RunResult& books = run.recording->books;
    stages.push_back({run.recording->ranks.representative(), run.recording->ranks.multiplicity(),
                      books.peak_device, books.reserved_device, timed.step_time.median,
                      timed.time});
  }
  return stages;
}

}  // namespace

RunResult price_run(const Scenario& scenario, const Recording& recording,
                    const sim::ClusterSpec& cluster, std::vector<sim::Timeline>* timelines) {
  const sim::ClusterSpec priced_on = sim::with_strategy(cluster, recording.strategy);
  RunResult result = recording.books;
  result.predicted = true;
  result.priced_from = price_basis(priced_on, recording.strategy.precision.compute_dtype);
  result.own_step_error =
      cluster.calibration ? cluster.calibration->own_error : cluster.own_step_error;
  std::vector<sim::Timeline> priced = sim::price(rank_traces(recording), priced_on);
  write_predicted_times(priced.front(), recording.stand_ins, result);
  result.rank = recording.ranks.representative();
  result.stages = stage_results(recording, priced);
  write_rates(scenario, recording.strategy,
              cluster_peak_flops(cluster, recording.strategy.precision.compute_dtype), result);
  if (timelines != nullptr) *timelines = std::move(priced);
  return result;
}

void write_rates(const Scenario& scenario, const Strategy& strategy, double peak_flops,
                 RunResult& result) {
  const auto tokens = static_cast<double>(tokens_per_step(scenario, strategy));
  result.model_flops_per_step =
      tokens * scenario.model.flops_per_token(scenario.run.sequence_length);
  if (result.step_time.median <= 0) return;
  result.tokens_per_second = tokens / result.step_time.median;
  if (peak_flops <= 0) return;
  const double mfu = result.model_flops_per_step / result.step_time.median / peak_flops;
  if (mfu <= 1) result.mfu = mfu;  // a peak that is exceeded was none
}

void write_origin(const Scenario& scenario, const ImportedStrategy& imported,
                  const std::string& backend, RunResult& result) {
  result.strategy = imported.strategy.name;
  result.backend = backend;
  result.precision = name_of(imported.strategy.precision.compute_dtype);
  result.ranks = static_cast<int>(scenario.run.ranks);
  result.setup = {.model = scenario.model.name,
                  .cluster = scenario.cluster,
                  .software = result.predicted ? scenario_software(scenario) : "",
                  .data = scenario.run.data,
                  .eval_data = scenario.run.eval_data,
                  .sequence_length = scenario.run.sequence_length,
                  .micro_batch = imported.strategy.micro_batch,
                  .gradient_accumulation = imported.strategy.gradient_accumulation,
                  .tokens_per_step = tokens_per_step(scenario, imported.strategy)};
  result.warnings.insert(result.warnings.begin(), imported.warnings.begin(),
                         imported.warnings.end());
}

MemoryNeed memory_need(const RunResult& unlimited) {
  return {.in_use = unlimited.peak_device.total(),
          .reserved = unlimited.reserved_device,
          .host = unlimited.reserved_host,
          .nvme = unlimited.peak_nvme.total()};
}

std::string need_text(const MemoryNeed& need, std::int64_t capacity) {
  if (need.reserved == 0) return "";
  std::string text = "needs " + format_bytes(need.reserved) +
                     " reserved: " + format_bytes(need.in_use) + " in use at the peak";
  if (need.fragmentation() > 0) {
    text += " and " + format_bytes(need.fragmentation()) + " lost to fragmentation";
  }
  if (capacity > 0 && need.in_use <= capacity && need.reserved > capacity) {
    text +=
        ", which decides: an allocator with expandable segments (PyTorch: "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) would lose hardly any";
  }
  if (need.host > 0) text += "; " + format_bytes(need.host) + " of host memory";
  if (need.nvme > 0) text += "; " + format_bytes(need.nvme) + " in files";
  return text;
}

const char* price_basis(const sim::ClusterSpec& cluster, DType dtype) {
  if (cluster.calibration) {
    const sim::RankCoefficients& known = cluster.calibration->nearest(cluster.devices);
    const bool is_timed = std::ranges::any_of(known.ops, [dtype](const auto& lines) {
      return lines[static_cast<std::size_t>(dtype)].samples > 0;
    });
    if (!is_timed) return "other precision";
    if (known.ranks != cluster.devices) return "other ranks";
    return cluster.calibration->quiet ? "quiet calibration" : "calibration";
  }
  if (cluster.shared_cores > 0) return "guess";
  return cluster.is_supported ? "data sheet" : "no published run";
}

}  // namespace zl
