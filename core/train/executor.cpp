#include "core/train/executor.h"

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

}  // namespace

StepMetrics run_step(Engine& engine, const DataSource& data, const StepOptions& options) {
  RankContext& context = engine.context();
  const BatchRequest request{.step = engine.steps(),
                             .rank = context.rank(Axis::data),
                             .ranks = context.ranks(Axis::data),
                             .micro_batch = engine.strategy().micro_batch,
                             .sequence_length = options.sequence_length};
  const Schedule& schedule = engine.schedule();
  const int last = schedule.repeats - 1;
  for (int round = 0; round <= last; ++round) {
    if (options.recorded_rounds > 0 && round == options.recorded_rounds && round < last) {
      context.trace().repeat_round(last - round);
      engine.skip_micro_batches((last - round) * schedule.micro_batches);
      round = last;
    }
    context.trace().begin_round();
    for (const Instruction& each : schedule.body) {
      execute(engine, each, round * schedule.micro_batches + each.micro, data, request);
    }
  }
  context.trace().end_round();
  return engine.step(options.stop, options.overflows);
}

}  // namespace zl
