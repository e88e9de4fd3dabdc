// What a run leaves behind: metrics of every step, communication statistics, peaks of memory, and
// the trace or the first steps of it. Ownership: refers to the rank's context. Threads: one rank's
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/rank/rank_context.h"
#include "core/train/communication_statistics.h"
#include "core/train/engine.h"
#include "core/train/rank_program.h"
#include "core/train/step_plan.h"

namespace zl {

// The loss is not finite, and it is not one that the loss scale makes up for.
bool is_lost(const StepMetrics& metrics);

class RunRecorder {
 public:
  // After the engine was made: what the trace holds by now is initialisation.
  RunRecorder(RankContext& context, const Engine& engine, const ProgramOptions& options);

  RunResult& result() { return outcome_.result; }
  // Whether the coming step, number `step` of this run, is to be taken; if not, it is counted here.
  // `overflows`: as Engine::step.
  bool takes(std::int64_t step, bool overflows, Engine& engine);
  // After step `step` of `steps` was taken.
  void take(std::int64_t step, const StepMetrics& metrics, double seconds, std::int64_t steps);
  // The run ends with the step just taken because it is_lost().
  void fail_lost();
  // After the last step. `link`: of the communicator.
  RankOutcome finish(const std::string& link);

 private:
  void append(const StepMetrics& metrics, double seconds);
  void keep_trace(std::int64_t step);
  void write_memory();

  RankContext& context_;
  RankOutcome outcome_;
  CommunicationStatistics statistics_;
  StepPlan plan_;
  bool keeps_whole_trace_, plans_, hashes_;
  bool keeps_metrics_;  // of each step; the same on all ranks of a run
  Trace previous_;      // its last collectives may still run: freed one step later
};

}  // namespace zl
