#include "simulator/planner/pass_reader.h"

namespace zl::sim {

std::optional<StagePass> PassReader::next(const Instruction& each) {
  const auto chunk = static_cast<std::size_t>(each.chunk);
  switch (each.kind) {
    case InstructionKind::forward:
      return StagePass::forward;
    case InstructionKind::input_gradient:
      return ++inputs_[chunk] == micros_ ? StagePass::last_backward : StagePass::backward;
    case InstructionKind::weight_gradient:
      return ++ended_[chunk] == micros_ ? StagePass::last_weight : StagePass::weight;
    case InstructionKind::backward: {
      ++inputs_[chunk];
      const bool last = ++ended_[chunk] == micros_;
      if (halves_) return last ? StagePass::last_whole_backward : StagePass::whole_backward;
      return last ? StagePass::last_backward : StagePass::backward;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace zl::sim
