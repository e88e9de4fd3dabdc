// What one rank does in a run: build the engine, take the steps, keep the books. Read this first:
// the same function runs on the CPU, on CUDA and on the recording device. Ownership: refers to the
// device and communicator of the rank. Threads: called on the rank's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/training_checkpoint.h"
#include "core/data/data_source.h"
#include "core/device/world.h"
#include "core/model/model_config.h"
#include "core/trace/trace.h"
#include "core/train/engine.h"
#include "core/train/evaluation.h"
#include "core/train/run_result.h"
#include "core/train/strategy.h"

namespace zl {

// Called on rank 0 after every step.
using StepObserver = std::function<void(std::int64_t step, const StepMetrics&, double seconds)>;

struct ProgramOptions {
  std::int64_t steps = 1;
  std::int64_t sequence_length = 0;
  std::uint64_t seed = 0;
  // What the weights begin with, for all ranks; null: they are drawn by the seed.
  std::shared_ptr<const WeightSource> weights = {};
  std::int64_t device_memory = 0;  // budgets in bytes; 0: none
  std::int64_t host_memory = 0;
  // Take at most this many steps of each kind (Engine::step_kind) after each kind, and let the last
  // of them stand for the others in the books: every step after the second of a kind is alike. 0:
  // take them all. The recording device needs no more than kSteadySteps.
  std::int64_t recorded_steps = 0;
  // Of each step, as StepOptions: a recording needs no more than steady_rounds().
  int recorded_rounds = 0;
  // As StepOptions; with record_accesses, which are of single events, all rounds are held. A run
  // needs no more than kTimedRounds.
  int held_rounds = 0;
  // Steps of this run, in order, that skip the update as if a gradient had overflowed: those that
  // the run did which is recorded here.
  std::vector<std::int64_t> overflows;
  // Return the whole trace, as with recorded_steps, instead of its first kSteadySteps steps.
  bool keep_trace = false;
  bool hash_trace = true;  // RunResult::op_sequence_hash; else 0: a seventh of a recording's time
  bool record_accesses = false;
  // When one of them turns true, all ranks end after the same step.
  const std::atomic<bool>*stop = nullptr, *enough = nullptr;
  // Go on although a loss is not finite, of a step that no overflow skipped. Else the run ends
  // there, `failed`, with its steps and without a checkpoint of that state.
  bool keep_going = false;
  StepObserver on_step;
  EvaluationPlan evaluation = {};
  // The file tier of a rank, for strategies that use one.
  std::function<std::unique_ptr<Storage>(const Strategy&, int rank)> make_storage;
  CheckpointConfig checkpoint = {};
  // As Engine: one for all ranks.
  std::shared_ptr<const PipelinePlan> pipeline = {};
  // Runs on every rank after the last step, with the engine alive: for tests.
  std::function<void(Engine&)> at_end;
};

inline constexpr std::int64_t kSteadySteps = 4;
inline constexpr int kSteadyRounds = 5;
// Rounds of a step after which one is like the next. Weights in files: each buffer has had its
// turn, so that a read waits for who had it before.
int steady_rounds(const Strategy& strategy);
// Micro-batches of an executed step whose events are held and timed, beside the last.
inline constexpr int kTimedRounds = 16;
// Of a pipeline's ranks, for fold(): enough for a picture of what goes on.
inline constexpr int kSteadyPipelineRounds = 8;

struct RankOutcome {
  RunResult result;  // without backend name, throughput and time breakdown, which the runner adds
  Trace trace;       // of the first kSteadySteps steps, or of all that were taken
  // Per step, the taken step that stands for it; empty: all were taken.
  std::vector<std::int64_t> stand_ins;
  std::vector<TensorAccess> accesses;
};

// Throws OutOfMemory and other Errors.
RankOutcome run_rank(RankHandle handle, const ModelConfig& model, const Strategy& strategy,
                     const DataSource& data, const ProgramOptions& options);

}  // namespace zl
