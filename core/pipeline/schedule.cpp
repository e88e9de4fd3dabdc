#include "core/pipeline/schedule.h"

#include <algorithm>

namespace zl {
namespace {

bool begins_backward(InstructionKind kind) {
  return kind == InstructionKind::backward || kind == InstructionKind::input_gradient;
}

}  // namespace

bool ends_backward(InstructionKind kind) {
  return kind == InstructionKind::backward || kind == InstructionKind::weight_gradient;
}

int Schedule::in_flight(int chunk) const {
  int now = 0, most = 0;
  for (const Instruction& each : body) {
    if (each.chunk != chunk) continue;
    if (each.kind == InstructionKind::forward) most = std::max(most, ++now);
    if (ends_backward(each.kind)) --now;
  }
  return most;
}

std::vector<Visit> Schedule::visits(std::span<const std::unique_ptr<Stage>> stages) const {
  std::vector<Visit> order;
  const auto append = [&](const std::vector<Visit>& visits) {
    order.insert(order.end(), visits.begin(), visits.end());
  };
  for (const Instruction& each : body) {
    const Stage& stage = *stages[each.chunk];
    if (each.kind == InstructionKind::forward) append(stage.forward_visits());
    if (begins_backward(each.kind)) append(stage.backward_visits());
  }
  return order;
}

Schedule whole_model_schedule(std::int64_t gradient_accumulation) {
  return {
      .body = {{InstructionKind::load}, {InstructionKind::forward}, {InstructionKind::backward}},
      .micro_batches = 1,
      .repeats = static_cast<int>(gradient_accumulation)};
}

}  // namespace zl
