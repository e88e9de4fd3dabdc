#include "results/ratio_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace zl {
namespace {

constexpr double kEachSide = 0.025;
constexpr std::size_t kExact = 40;   // times in all, up to which counts are exact in a double
constexpr std::size_t kMost = 1000;  // times of a set that are looked at: 1e6 ratios

// How many orders of m + n times have the rank sum statistic U = u: the coefficients of the
// Gaussian binomial.
std::vector<double> counts_of_u(std::size_t m, std::size_t n) {
  std::vector<double> counts(m * n + 1, 0);
  counts[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t u = m * n + 1; u-- > n + i;) counts[u] -= counts[u - n - i];
    for (std::size_t u = i; u <= m * n; ++u) counts[u] += counts[u - i];
  }
  return counts;
}

// How many ratios lie beyond each end of the interval; negative: there is none.
std::ptrdiff_t beyond(std::size_t m, std::size_t n) {
  const auto pairs = static_cast<double>(m * n);
  if (m + n > kExact) {
    constexpr double kNormal = 1.959964;
    const double spread = std::sqrt(pairs * static_cast<double>(m + n + 1) / 12);
    return static_cast<std::ptrdiff_t>(pairs / 2 - kNormal * spread) - 1;
  }
  const std::vector<double> counts = counts_of_u(m, n);
  double all = 0, below = 0;
  for (const double count : counts) all += count;
  std::ptrdiff_t u = -1;
  for (const double count : counts) {
    below += count;
    if (below > kEachSide * all) return u;
    ++u;
  }
  return u;
}

std::vector<double> spread_out(std::span<const double> times) {
  if (times.size() <= kMost) return {times.begin(), times.end()};
  std::vector<double> some;
  for (std::size_t i = 0; i < kMost; ++i) some.push_back(times[i * times.size() / kMost]);
  return some;
}

}  // namespace

std::optional<std::pair<double, double>> ratio_interval(std::span<const double> all_a,
                                                        std::span<const double> all_b) {
  const std::vector<double> a = spread_out(all_a), b = spread_out(all_b);
  const std::ptrdiff_t out = beyond(a.size(), b.size());
  if (a.empty() || b.empty() || out < 0) return std::nullopt;
  std::vector<double> ratios;
  for (const double x : a) {
    for (const double y : b) ratios.push_back(y / x);
  }
  std::nth_element(ratios.begin(), ratios.begin() + out, ratios.end());
  const double low = ratios[out];
  std::nth_element(ratios.begin(), ratios.end() - 1 - out, ratios.end());
  return std::pair{low, ratios[ratios.size() - 1 - out]};
}

}  // namespace zl
