// What the caller of a run gets while it lasts and wants kept of it.
// Ownership: refers to what the caller owns, which outlives the run. Threads: on_step and on_trace
// are called on the thread of rank 0.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/train/rank_program.h"

namespace zl {

struct RunHooks {
  StepObserver on_step;                     // rank 0, after every step
  const std::atomic<bool>* stop = nullptr;  // ends the run after the current step
  bool keep_going = false;                  // see ProgramOptions
  // Of real runs. The folder gets one folder per strategy; the identity is filled in.
  CheckpointConfig checkpoint = {};
  // Of real runs: the file (.safetensors) that gets the fp32 weights after the last step. A run
  // whose weights cannot be written keeps its numbers and is `failed`.
  std::string save_weights_to;
  // Of real runs: what run.data could be; the loss on it after the last step goes to on_validated,
  // on rank 0 (validation_loss()).
  std::string validate_on = {};
  std::function<void(double loss)> on_validated = {};
  // Of simulated runs: the steps that skip the update, as they did in the run that is compared
  // (overflowed_steps). The result says so.
  std::vector<std::int64_t> overflows = {};
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(1);  // as in WorldOptions
  // Rank 0's trace: of all steps with timings from a real run, of kSteadySteps steps from a
  // simulated one.
  std::function<void(const Trace&)> on_trace;
};

}  // namespace zl
