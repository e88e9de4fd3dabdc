// Non-negative least squares for the three coefficients of a LinearCost.
// Threads: pure functions.
#pragma once

#include <span>
#include <utility>

#include "simulator/cluster/coefficients.h"
#include "simulator/measured.h"

namespace zl::sim {

// Minimises sum of count * (predicted - mean)^2 / mean over coefficients >= 0, exactly (all seven
// supports are tried), then scales so that the predicted total equals the measured one: a step is a
// sum, so its time comes out right when its parts err independently.
LinearCost fit_line(std::span<const Sample> samples);

// A line of small work and one of large (first, second), from where the two together are clearly
// nearer than one: where caches end. The second has no samples where one line does.
std::pair<LinearCost, LinearCost> fit_lines(std::span<const Sample> samples);

}  // namespace zl::sim
