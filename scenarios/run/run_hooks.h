// What the caller of a run gets while it lasts and wants kept of it.
// Ownership: refers to what the caller owns, which outlives the run. Threads: on_step and on_trace
// are called on the thread of rank 0.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/train/rank_program.h"

namespace zl {

struct RunHooks {
  StepObserver on_step;                     // rank 0, after every step
  const std::atomic<bool>* stop = nullptr;  // ends the run after the current step
  // Ends it likewise, because its caller has seen enough: the result says so.
  const std::atomic<bool>* enough = nullptr;
  bool keep_going = false;  // see ProgramOptions
  // Of real runs. The folder gets one folder per strategy; the identity is filled in.
  CheckpointConfig checkpoint = {};
  // Of real runs: the file (is_weights_file) that gets the fp32 weights, or the folder that gets
  // the model as transformers loads it: those of the best evaluation, else those after the last
  // step. A run whose weights cannot be written keeps its numbers and is `failed`.
  std::string save_weights_to;
  std::optional<DType> save_dtype = {};  // of the folder; else that of the weights that were loaded
  // Of real runs, on rank 0: after every judgement by run.eval_data.
  std::function<void(const EvaluationPoint&, bool is_best)> on_evaluation = {};
  // Of simulated runs: the steps that skip the update, as they did in the run that is compared
  // (overflowed_steps). The result says so.
  std::vector<std::int64_t> overflows = {};
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(1);  // as in WorldOptions
  // Rank 0's trace: of all steps with timings from a real run, of each kTimedRounds micro-batches
  // and the last; of kSteadySteps steps from a simulated one.
  std::function<void(const Trace&)> on_trace;
};

}  // namespace zl
