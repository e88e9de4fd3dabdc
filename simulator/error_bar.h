// Error bars: what holds the truth nine times out of ten, if errors are lognormal.
// Ownership: values. Threads: pure function.
#pragma once

#include <vector>

namespace zl::sim {

// Of nine times out of ten, in standard deviations.
inline constexpr double kNineInTen = 1.645;

// The standard deviation whose bar holds nine in ten of these errors, logarithms of measured over
// predicted; of fewer than ten all. At least one.
double bar_of(std::vector<double> errors);

}  // namespace zl::sim
