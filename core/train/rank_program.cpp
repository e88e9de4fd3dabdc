#include "core/train/rank_program.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "core/train/books.h"

namespace zl {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One optimizer step: accumulation micro-batches of forward and backward, then the update.
StepMetrics take_step(Engine& engine, const RankContext& context, const TokenSource& data,
                      std::int64_t sequence_length, bool stop) {
  const Strategy& strategy = engine.strategy();
  const auto rows = static_cast<std::size_t>(strategy.micro_batch * sequence_length);
  std::vector<std::int32_t> tokens(rows), targets(rows);
  for (std::int64_t micro = 0; micro < strategy.gradient_accumulation; ++micro) {
    data.batch(engine.steps(), micro, context.rank(), context.ranks(), strategy.micro_batch,
               sequence_length, tokens.data(), targets.data());
    engine.forward(tokens, targets);
    engine.backward();
  }
  return engine.step(stop);
}

void append(RunResult& result, const StepMetrics& metrics, double seconds) {
  result.loss.push_back(metrics.loss);
  result.grad_norm.push_back(metrics.grad_norm);
  result.learning_rate.push_back(metrics.lr);
  result.loss_scale.push_back(metrics.loss_scale);
  result.step_seconds.push_back(seconds);
  result.skipped_steps += metrics.skipped ? 1 : 0;
  ++result.steps;
}

void write_memory(const RankContext& context, RunResult& result) {
  result.peak_device.tag = context.ledger().at_peak(MemorySpace::device);
  // A run's host memory is pinned or not, never both.
  const auto& pinned = context.ledger().at_peak(MemorySpace::pinned_host);
  result.peak_host.tag = context.ledger().at_peak(MemorySpace::host);
  for (std::size_t tag = 0; tag < kMemoryTags; ++tag) result.peak_host.tag[tag] += pinned[tag];
  result.peak_nvme.tag = context.ledger().at_peak(MemorySpace::nvme);
  result.reserved_device = context.reserved(MemorySpace::device);
  result.reserved_host =
      context.reserved(MemorySpace::pinned_host) + context.reserved(MemorySpace::host);
}

// Which steps the recording device takes, and which of them stand for the others.
class StepPlan {
 public:
  StepPlan(std::int64_t per_kind, int first_kind) : per_kind_(per_kind), before_(first_kind) {}

  // Whether the coming step is to be taken.
  bool takes(std::int64_t step, int kind) {
    Taken& like = taken_[{std::exchange(before_, kind), kind}];
    like_.push_back(&like);
    if (per_kind_ > 0 && like.count == per_kind_) return false;
    ++like.count;
    like.last = step;
    return true;
  }
  // The step that stands for the newest.
  std::int64_t stand_in() const { return like_.back()->last; }
  std::vector<std::int64_t> stand_ins() const {
    std::vector<std::int64_t> steps;
    for (const Taken* like : like_) steps.push_back(like->last);
    return steps;
  }

 private:
  struct Taken {
    std::int64_t count = 0, last = 0;
  };
  std::int64_t per_kind_;
  int before_;
  std::map<std::pair<int, int>, Taken> taken_;  // by the kind before and the kind
  std::vector<const Taken*> like_;              // per step
};

// A loss that overflowed or is no number says that the training is lost; not every reader looks.
void warn_of_lost_loss(RunResult& result) {
  const auto lost = std::find_if(result.loss.begin(), result.loss.end(),
                                 [](double loss) { return !std::isfinite(loss); });
  if (lost == result.loss.end()) return;
  const std::int64_t step = result.first_step + (lost - result.loss.begin()) + 1;
  result.warnings.push_back("the loss is not finite since step " + std::to_string(step));
}

}  // namespace

RankOutcome run_rank(RankHandle handle, const ModelConfig& model, const Strategy& strategy,
                     const TokenSource& data, const ProgramOptions& options) {
  RankOutcome outcome;
  RunResult& result = outcome.result;
  std::unique_ptr<Storage> storage;  // outlives the work of the context
  if (strategy.offload.files() && options.make_storage) {
    storage = options.make_storage(strategy, handle.communicator.rank());
  }
  RankContext context(handle.device, handle.communicator,
                      {.device_memory = options.device_memory,
                       .record_accesses = options.record_accesses,
                       .host_memory = options.host_memory});
  context.use_storage(storage.get());
  Checkpoints checkpoints(options.checkpoint, context);
  Books books;
  Engine engine(context, model, strategy, options.sequence_length, options.seed);
  books.close_step(context.trace());
  StepPlan plan(options.recorded_steps, engine.step_kind());
  const bool keep_trace = options.keep_trace || options.recorded_steps > 0;
  Trace previous;  // its last collectives may still run: freed one step later
  result.first_step = checkpoints.begin(engine, options.steps, result.warnings);
  const std::int64_t steps = options.steps - result.first_step;
  for (std::int64_t step = 1; step <= steps; ++step) {
    if (!plan.takes(step, engine.step_kind())) {
      engine.skip_step();
      books.repeat(plan.stand_in());
      append(result, StepMetrics{}, 0);
      continue;
    }
    const auto start = Clock::now();
    const bool stop = options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
    StepMetrics metrics = take_step(engine, context, data, options.sequence_length, stop);
    const double seconds = seconds_since(start);
    metrics.peak_device = context.ledger().peak(MemorySpace::device);
    append(result, metrics, seconds);
    if (options.on_step && context.rank() == 0) {
      options.on_step(result.first_step + step, metrics, seconds);
    }
    books.close_step(context.trace());
    if (step == std::min(steps, kSteadySteps)) {
      result.op_sequence_hash = context.trace().sequence_hash();
    }
    if (!keep_trace && step >= kSteadySteps) {
      Trace& keep = step == kSteadySteps ? outcome.trace : previous;
      keep = std::move(context.trace());
      context.trace() = Trace();
      books.restart_trace();
      context.time_events(false);  // nobody sees the later steps' events
    }
    checkpoints.after_step(engine, metrics.stop || step == steps);
    if (metrics.stop) break;
  }
  context.synchronize(StreamId::communication);
  if (outcome.trace.events().empty()) outcome.trace = std::move(context.trace());
  if (options.recorded_steps > 0) outcome.stand_ins = plan.stand_ins();
  warn_of_lost_loss(result);
  books.write(result, handle.communicator.link());
  write_memory(context, result);
  if (options.at_end) options.at_end(engine);
  outcome.accesses = context.accesses();
  return outcome;
}

}  // namespace zl
