#include "simulator/planner/pass_reader.h"

namespace zl::sim {

std::optional<StagePass> PassReader::next(const Instruction& each) {
  const auto chunk = static_cast<std::size_t>(each.chunk);
  const auto which = [&](int nth, StagePass usual, StagePass first, StagePass last) {
    if (nth == micros_) return last;
    return nth == 1 ? first : usual;
  };
  switch (each.kind) {
    case InstructionKind::forward:
      return StagePass::forward;
    case InstructionKind::input_gradient:
      return which(++inputs_[chunk], StagePass::backward, StagePass::first_backward,
                   StagePass::last_backward);
    case InstructionKind::weight_gradient:
      return which(++ended_[chunk], StagePass::weight, StagePass::first_weight,
                   StagePass::last_weight);
    case InstructionKind::backward: {
      ++inputs_[chunk];
      const int nth = ++ended_[chunk];
      if (halves_) {
        return which(nth, StagePass::whole_backward, StagePass::first_whole_backward,
                     StagePass::last_whole_backward);
      }
      return which(nth, StagePass::backward, StagePass::first_backward, StagePass::last_backward);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace zl::sim
