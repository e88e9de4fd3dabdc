// Non-negative least squares for the three coefficients of a LinearCost.
// Threads: pure functions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "simulator/cluster/coefficients.h"
#include "simulator/measured.h"

namespace zl::sim {

// What counts. time: what takes most, since a step is a sum whose time comes out right when its
// parts err independently; errors are measured against a variance that grows with the mean. shapes:
// the relative error of each alike, so that the line holds from the smallest model to the largest.
enum class Weigh : std::uint8_t { time, shapes };

// Minimises the weighted sum of (predicted - mean)^2 over coefficients >= 0, exactly (all seven
// supports are tried), then scales so that the predicted total equals the measured one (time) or
// the relative errors add up to none (shapes).
LinearCost fit_line(std::span<const Sample> samples, Weigh by = Weigh::time);

// A line of small work and one of large (first, second), from where the two together are clearly
// nearer than one: where caches end. The second has no samples where one line does; its fixed time
// is at most `most_more_fixed` seconds longer than the first's.
std::pair<LinearCost, LinearCost> fit_lines(std::span<const Sample> samples, Weigh by = Weigh::time,
                                            double most_more_fixed = INFINITY);

// x >= 0 that makes the products p = row . x ones: minimises the sum of |1 - p| / sqrt(p), to which
// twice and half are as wrong and the few rows that are far off matter little. By least squares
// that are weighted anew by the errors of the last (Schlossmacher 1973). All 0 without rows.
using Terms = std::array<double, 3>;
Terms fit_ones(std::span<const Terms> rows);

}  // namespace zl::sim
