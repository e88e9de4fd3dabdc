// What a chunk's program holds at the moments of a step at which most may be held.
// Ownership: values. Threads: pure functions.
#pragma once

#include <functional>
#include <string>

#include "simulator/held_program.h"

namespace zl::sim {

using TakeMoment = std::function<void(const std::string& when, HeldParts parts)>;

// Of the backward of one micro-batch through the chunk, from its last layer to its first.
// first_layer: of the chunk, in the model from 0.
void backward_moments(const HeldProgram& program, std::int64_t first_layer, const TakeMoment& take);

// After all backwards of a step.
void step_moments(const HeldProgram& program, const TakeMoment& take);

}  // namespace zl::sim
