#include "core/train/executor.h"

namespace zl {
namespace {

void execute(Engine& engine, const Instruction& instruction, int micro, const DataSource& data,
             BatchRequest request) {
  switch (instruction.kind) {
    case InstructionKind::load:
      request.micro = micro;
      return engine.load(micro, data.batch(request));
    case InstructionKind::forward:
      return engine.forward(micro);
    case InstructionKind::backward:
      return engine.backward(micro);
  }
}

}  // namespace

StepMetrics run_step(Engine& engine, const DataSource& data, std::int64_t sequence_length,
                     bool stop) {
  const RankContext& context = engine.context();
  const BatchRequest request{.step = engine.steps(),
                             .rank = context.rank(Axis::data),
                             .ranks = context.ranks(Axis::data),
                             .micro_batch = engine.strategy().micro_batch,
                             .sequence_length = sequence_length};
  const Schedule& schedule = engine.schedule();
  for (int repeat = 0; repeat < schedule.repeats; ++repeat) {
    for (const Instruction& each : schedule.body) {
      execute(engine, each, repeat * schedule.micro_batches + each.micro, data, request);
    }
  }
  return engine.step(stop);
}

}  // namespace zl
