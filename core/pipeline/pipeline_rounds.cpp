#include "core/pipeline/pipeline_rounds.h"

#include <algorithm>
#include <span>

namespace zl {
namespace {

// How far the micro-batch is from that of an instruction of the same kind and chunk; 0: of another.
int distance(const Instruction& from, const Instruction& to) {
  return from.kind == to.kind && from.chunk == to.chunk ? to.micro - from.micro : 0;
}

// Whether every chunk of the rank takes `step` micro-batches forward, and so many back.
bool takes_all_chunks(std::span<const Instruction> round, int step, int chunks) {
  std::vector<int> forwards(chunks), backwards(chunks);
  for (const Instruction& each : round) {
    if (each.kind == InstructionKind::forward) ++forwards[each.chunk];
    if (ends_backward(each.kind)) ++backwards[each.chunk];
  }
  const std::vector<int> all(chunks, step);
  return forwards == all && backwards == all;
}

// The longest part around the instruction in the middle with rounds of that length.
SteadyPart around_middle(const std::vector<Instruction>& body, std::size_t length) {
  const std::size_t middle = body.size() / 2;
  const int step = distance(body[middle], body[middle + length]);
  const auto repeats = [&](std::size_t i) {
    return i + length < body.size() && distance(body[i], body[i + length]) == step;
  };
  std::size_t first = middle, last = middle;
  while (first > 0 && repeats(first - 1)) --first;
  while (repeats(last)) ++last;
  return {.first = first, .length = length, .rounds = (last - first) / length + 1, .step = step};
}

}  // namespace

SteadyPart steady_part(const std::vector<Instruction>& body) {
  constexpr std::size_t kLeast = 3;  // rounds
  const std::size_t middle = body.size() / 2;
  int chunks = 0;
  for (const Instruction& each : body) chunks = std::max(chunks, each.chunk + 1);
  for (std::size_t length = 1; length * kLeast <= body.size(); ++length) {
    if (distance(body[middle], body[middle + length]) <= 0) continue;
    const SteadyPart part = around_middle(body, length);
    if (part.rounds < kLeast) continue;
    const std::span round(body.data() + part.first, length);
    if (takes_all_chunks(round, part.step, chunks)) return part;
  }
  return {};
}

PipelinePlan fold(PipelinePlan plan, int kept, bool as_in_flight) {
  for (Schedule& schedule : plan.schedules) {
    SteadyPart part = schedule.steady;
    if (part.rounds == 0) continue;
    auto first = static_cast<std::size_t>(std::max(3, (kept + part.step - 1) / part.step));
    for (int chunk = 0; as_in_flight && chunk < plan.pipeline.shape.chunks; ++chunk) {
      first += static_cast<std::size_t>(schedule.in_flight(chunk));
    }
    if (part.rounds < 2 * first) continue;
    part.left_out = static_cast<int>(part.rounds - first - 1);
    const auto begin =
        schedule.body.begin() + static_cast<std::ptrdiff_t>(part.first + first * part.length);
    schedule.body.erase(begin, begin + part.left_out * static_cast<std::ptrdiff_t>(part.length));
    part.rounds = first + 1;
    schedule.steady = part;
  }
  return plan;
}

}  // namespace zl
