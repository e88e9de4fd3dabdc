#include "core/train/rank_program.h"

#include <algorithm>
#include <chrono>

#include "core/train/executor.h"
#include "core/train/run_recorder.h"

namespace zl {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

// What part of the model a rank has, is part of what its state belongs to.
CheckpointConfig checkpoint_of(CheckpointConfig config, const Strategy& strategy) {
  if (const std::string text = placement_text(strategy.pipeline); !text.empty()) {
    config.identity["pipeline"] = text;
  }
  if (strategy.tensor.ranks > 1) {
    config.identity["parallel.tensor"] = std::to_string(strategy.tensor.ranks);
  }
  if (strategy.zero.replicas > 1) {
    config.identity["parallel.replicate"] = std::to_string(strategy.zero.replicas);
  }
  return config;
}

}  // namespace

int steady_rounds(const Strategy& strategy) {
  if (strategy.offload.parameters != Tier::nvme) return kSteadyRounds;
  // A recording stays small: of more buffers only the order of waits may differ.
  constexpr std::int64_t kMost = 64;
  const std::int64_t turns = strategy.offload.parameter_buffer_count + 2;
  return static_cast<int>(std::clamp<std::int64_t>(turns, kSteadyRounds, kMost));
}

RankOutcome run_rank(RankHandle handle, const ModelConfig& model, const Strategy& strategy,
                     const DataSource& data, const ProgramOptions& options) {
  std::unique_ptr<Storage> storage;  // outlives the work of the context
  if (strategy.offload.files() && options.make_storage) {
    storage = options.make_storage(strategy, handle.communicator.rank());
  }
  RankContext context(handle.device, handle.communicator,
                      {.device_memory = options.device_memory,
                       .record_accesses = options.record_accesses,
                       .host_memory = options.host_memory,
                       .mesh = mesh_of(strategy, handle.communicator.size())});
  context.use_storage(storage.get());
  Checkpoints checkpoints(checkpoint_of(options.checkpoint, strategy), context,
                          handle.communicator);
  Engine engine(context, model, strategy, options.sequence_length,
                InitialWeights(options.seed, options.weights.get()), options.pipeline);
  RunRecorder recorder(context, engine, options);
  RunResult& result = recorder.result();
  result.first_step = checkpoints.begin(engine, options.steps, result.warnings);
  const std::int64_t steps = options.steps - result.first_step;
  Judge judge(options.evaluation, engine, options.sequence_length, result);
  judge.resume(checkpoints.best());
  judge.begin();
  if (result.first_step > 0 && steps == 0) judge.after_step(result.first_step, true);
  for (std::int64_t step = 1; step <= steps; ++step) {
    const bool overflows =
        std::binary_search(options.overflows.begin(), options.overflows.end(), step);
    if (!recorder.takes(step, overflows, engine)) continue;
    const auto start = Clock::now();
    const bool stop = is_set(options.stop) || is_set(options.enough);
    StepMetrics metrics =
        run_step(engine, data,
                 {.sequence_length = options.sequence_length,
                  .stop = stop,
                  .overflows = overflows,
                  .recorded_rounds = options.recorded_rounds,
                  .held_rounds = options.record_accesses ? 0 : options.held_rounds});
    const double seconds = seconds_since(start);
    metrics.peak_device = context.ledger().peak(MemorySpace::device);
    if (options.on_step && context.rank() == 0) {
      options.on_step(result.first_step + step, metrics, seconds);
    }
    recorder.take(step, metrics, seconds, steps);
    // The loss is the mean over the ranks: they all end here.
    if (!options.keep_going && is_lost(metrics)) {
      recorder.fail_lost();
      break;
    }
    const bool last = metrics.stop || step == steps;
    judge.after_step(result.first_step + step, last);
    checkpoints.set_best(judge.best());
    checkpoints.after_step(engine, last);
    if (last) break;
  }
  context.synchronize(StreamId::communication);
  RankOutcome outcome = recorder.finish(handle.communicator.link());
  if (options.at_end) options.at_end(engine);
  outcome.accesses = context.accesses();
  return outcome;
}

}  // namespace zl
