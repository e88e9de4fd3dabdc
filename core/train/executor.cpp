#include "core/train/executor.h"

#include <algorithm>

#include "core/train/rank_program.h"

namespace zl {
namespace {

void execute(Engine& engine, const Instruction& instruction, int micro, const DataSource& data,
             BatchRequest request) {
  switch (instruction.kind) {
    case InstructionKind::load:
      request.micro = micro;
      return engine.load(micro, data.batch(request), instruction.chunk);
    case InstructionKind::forward:
      return engine.forward(micro, instruction.chunk);
    case InstructionKind::backward:
      return engine.backward(micro, instruction.chunk);
    case InstructionKind::input_gradient:
      return engine.input_gradient(micro, instruction.chunk);
    case InstructionKind::weight_gradient:
      return engine.weight_gradient(micro, instruction.chunk);
    default:
      return engine.exchange(instruction);
  }
}

// Whether the trace may count that round, of as many, with those before; the first ones do not wait
// yet for what later ones wait for.
bool may_fold(const Engine& engine, std::int64_t round, std::int64_t rounds, int held) {
  return held > 0 && round >= std::max(held, steady_rounds(engine.strategy())) &&
         round + 1 < rounds;
}

// Tells the trace where the rounds of the body's steady part begin and end, before instruction
// `at`. held: as StepOptions.
void mark_round(Engine& engine, const SteadyPart& steady, std::size_t at, int held) {
  if (steady.rounds == 0 || at < steady.first || (at - steady.first) % steady.length != 0) return;
  const std::size_t round = (at - steady.first) / steady.length;
  if (round > steady.rounds) return;
  Trace& trace = engine.context().trace();
  if (round == steady.rounds) return trace.end_round();
  if (round + 1 == steady.rounds && steady.left_out > 0) {
    trace.repeat_round(steady.left_out);
    engine.skip_micro_batches(steady.left_out * steady.step);
  }
  trace.begin_round(may_fold(engine, static_cast<std::int64_t>(round),
                             static_cast<std::int64_t>(steady.rounds), held));
}

}  // namespace

StepMetrics run_step(Engine& engine, const DataSource& data, const StepOptions& options) {
  RankContext& context = engine.context();
  const BatchRequest request{.step = engine.steps(),
                             .rank = context.rank(Axis::data),
                             .ranks = context.ranks(Axis::data),
                             .micro_batch = engine.strategy().micro_batch,
                             .sequence_length = options.sequence_length,
                             .micros = engine.strategy().gradient_accumulation};
  const Schedule& schedule = engine.schedule();
  const int last = schedule.repeats - 1;
  for (int round = 0; round <= last; ++round) {
    if (options.recorded_rounds > 0 && round == options.recorded_rounds && round < last) {
      context.trace().repeat_round(last - round);
      engine.skip_micro_batches((last - round) * schedule.micro_batches);
      round = last;
    }
    if (schedule.steady.rounds == 0) {
      context.trace().begin_round(may_fold(engine, round, schedule.repeats, options.held_rounds));
    }
    for (std::size_t i = 0; i < schedule.body.size(); ++i) {
      const Instruction& each = schedule.body[i];
      mark_round(engine, schedule.steady, i, options.held_rounds);
      execute(engine, each, round * schedule.micro_batches + each.micro, data, request);
    }
  }
  context.trace().end_round();
  return engine.step(options.stop, options.overflows);
}

}  // namespace zl
