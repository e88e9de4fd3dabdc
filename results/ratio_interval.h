// How sure one is that one set of times differs from another.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <span>
#include <utility>

namespace zl {

// The least and the largest factor between two sets of positive times (b is so many times a) that a
// two-sided rank sum test (Wilcoxon; Mann and Whitney) at 5 % would not reject: Moses' interval of
// the shift of their logarithms, exact for small sets, by the normal approximation for others
// (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, section 4.3). No
// assumption about how times scatter but that both do alike. None: too few times for 95 %, which
// takes 4 and 4, or 3 and 5.
std::optional<std::pair<double, double>> ratio_interval(std::span<const double> a,
                                                        std::span<const double> b);

}  // namespace zl
