// Weights under ZeRO-3 that a rank of a pipeline brings while it is still in the pass before: those
// of the first unit that it comes to next, unless it is in that unit.
// Ownership: values. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace zl::sim {

// The first unit's of a pass: bytes, picoseconds in which they are gathered, and before that, where
// they are on the host, copied.
struct Lead {
  std::int64_t bytes = 0, time = 0, copied = 0;
};

// Of a stage, with 0 for backwards and 1 for forwards.
struct StageWeights {
  std::array<Lead, 2> leads;
  // Whether a pass begins and ends in different units; and a backward in another than where the
  // forward ended, as where groups of layers are recomputed.
  std::array<bool, 2> has_several{};
  bool turns_elsewhere = false;
};

// What a rank comes to after a pass.
struct NextPass {
  enum class Unit : std::uint8_t { same, other, other_if_several, other_if_turns_elsewhere };
  std::int32_t stage = -1;
  bool forward = true;
  Unit unit = Unit::same;

  bool operator==(const NextPass&) const = default;
  bool is_brought(const StageWeights& of_stage) const {
    if (unit == Unit::other_if_several) return of_stage.has_several[forward ? 1 : 0];
    if (unit == Unit::other_if_turns_elsewhere) return of_stage.turns_elsewhere;
    return unit == Unit::other;
  }
  const Lead& lead(const StageWeights& of_stage) const { return of_stage.leads[forward ? 1 : 0]; }
};

// A pass of `stage` after one of `before`.
inline NextPass next_pass(std::int32_t before, bool was_forward, std::int32_t stage, bool forward) {
  using Unit = NextPass::Unit;
  if (stage != before) return {stage, forward, Unit::other};
  if (forward == was_forward) return {stage, forward, Unit::other_if_several};
  return {stage, forward, forward ? Unit::same : Unit::other_if_turns_elsewhere};
}

}  // namespace zl::sim
