// Of which pass of a micro-batch a recorded event is, or of what is between them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/trace/trace.h"

namespace zl::sim {

enum class ReadKind : std::uint8_t { forward, backward, weight, message, step };

// Belongs to whatever it comes in.
inline bool is_nested(Phase phase) {
  return phase == Phase::recompute || phase == Phase::recompute_products ||
         phase == Phase::gather || phase == Phase::reduce;
}

// before: that of the event before it.
inline ReadKind read_kind(const Scope& scope, ReadKind before) {
  if (scope.micro < 0) return ReadKind::step;
  if (is_nested(scope.phase)) return before;
  if (scope.phase == Phase::forward) return ReadKind::forward;
  if (scope.phase == Phase::backward) return ReadKind::backward;
  return scope.phase == Phase::weight_gradient ? ReadKind::weight : ReadKind::message;
}

}  // namespace zl::sim
