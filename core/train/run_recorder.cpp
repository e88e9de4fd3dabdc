#include "core/train/run_recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zl {
namespace {

// What a result has of every step.
constexpr std::vector<double> RunResult::*kMetrics[] = {
    &RunResult::loss, &RunResult::grad_norm, &RunResult::learning_rate, &RunResult::loss_scale,
    &RunResult::step_seconds};

// Of a run that went on: not every reader looks at the losses.
void warn_of_lost_loss(RunResult& result) {
  if (result.outcome != Outcome::ok) return;
  const auto lost = std::find_if(result.loss.begin(), result.loss.end(),
                                 [](double loss) { return !std::isfinite(loss); });
  if (lost == result.loss.end()) return;
  const std::int64_t step = result.first_step + (lost - result.loss.begin()) + 1;
  result.warnings.push_back("the loss is not finite since step " + std::to_string(step));
}

}  // namespace

bool is_lost(const StepMetrics& metrics) {
  return !metrics.skipped && !std::isfinite(metrics.loss);
}

RunRecorder::RunRecorder(RankContext& context, const Engine& engine, const ProgramOptions& options)
    : context_(context),
      plan_(options.recorded_steps, 2 * engine.step_kind()),
      keeps_whole_trace_(options.keep_trace || options.recorded_steps > 0),
      plans_(options.recorded_steps > 0),
      hashes_(options.hash_trace),
      keeps_metrics_(plans_ || context.rank() == 0) {
  statistics_.close_step(context.trace());
  statistics_.reserve(options.steps + 1);
  for (const auto values : kMetrics) {
    if (keeps_metrics_) (result().*values).reserve(options.steps);
  }
}

bool RunRecorder::takes(std::int64_t step, bool overflows, Engine& engine) {
  if (plan_.takes(step, 2 * engine.step_kind() + (overflows ? 1 : 0))) return true;
  engine.skip_step(overflows);
  statistics_.repeat(plan_.stand_in());
  append({.skipped = overflows}, 0);
  return false;
}

void RunRecorder::take(std::int64_t step, const StepMetrics& metrics, double seconds,
                       std::int64_t steps) {
  append(metrics, seconds);
  statistics_.close_step(context_.trace());
  if (hashes_ && step == std::min(steps, kSteadySteps)) {
    result().op_sequence_hash = context_.trace().sequence_hash();
  }
  if (!keeps_whole_trace_ && step >= kSteadySteps) keep_trace(step);
}

void RunRecorder::fail_lost() {
  RunResult& result = outcome_.result;
  result.outcome = Outcome::failed;
  result.message = "the loss is not finite at step " +
                   std::to_string(result.first_step + result.steps) +
                   ": lower the learning rate, or take the steps all the same with --keep-going";
}

void RunRecorder::append(const StepMetrics& metrics, double seconds) {
  RunResult& result = outcome_.result;
  result.skipped_steps += metrics.skipped ? 1 : 0;
  ++result.steps;
  if (!keeps_metrics_) return;
  result.loss.push_back(metrics.loss);
  result.grad_norm.push_back(metrics.grad_norm);
  result.learning_rate.push_back(metrics.lr);
  result.loss_scale.push_back(metrics.loss_scale);
  result.step_seconds.push_back(seconds);
}

void RunRecorder::keep_trace(std::int64_t step) {
  Trace& keep = step == kSteadySteps ? outcome_.trace : previous_;
  keep = std::move(context_.trace());
  context_.trace() = Trace();
  statistics_.restart_trace();
  context_.time_events(false);  // nobody sees the later steps' events
}

void RunRecorder::write_memory() {
  RunResult& result = outcome_.result;
  const Ledger& ledger = context_.ledger();
  result.peak_device.tag = ledger.at_peak(MemorySpace::device);
  // A run's host memory is pinned or not, never both.
  const auto& pinned = ledger.at_peak(MemorySpace::pinned_host);
  result.peak_host.tag = ledger.at_peak(MemorySpace::host);
  for (std::size_t tag = 0; tag < kMemoryTags; ++tag) result.peak_host.tag[tag] += pinned[tag];
  result.peak_nvme.tag = ledger.at_peak(MemorySpace::nvme);
  result.reserved_device = context_.reserved(MemorySpace::device);
  result.reserved_host =
      context_.reserved(MemorySpace::pinned_host) + context_.reserved(MemorySpace::host);
}

RankOutcome RunRecorder::finish(const std::string& link) {
  if (outcome_.trace.events().empty()) outcome_.trace = std::move(context_.trace());
  if (plans_) outcome_.stand_ins = plan_.stand_ins();
  warn_of_lost_loss(outcome_.result);
  statistics_.write(outcome_.result, link);
  write_memory();
  return std::move(outcome_);
}

}  // namespace zl
