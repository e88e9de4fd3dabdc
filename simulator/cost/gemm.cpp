#include "simulator/cost/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace zl::sim {
namespace {

// Of an output tile, and how often it was halved.
struct Tile {
  double rows, columns;
  std::size_t halves;
};
constexpr Tile kTiles[] = {{256, 128, 0}, {128, 256, 0}, {128, 128, 1},
                           {128, 64, 2},  {64, 128, 2},  {64, 64, 3}};
constexpr double kParts[] = {1, 2, 4, 8};  // of k
constexpr double kLeastPart = 1024, kMostWaves = 4;
constexpr double kAddingUp = 4;  // parts, beside one tile's filling and draining

}  // namespace

double gemm_seconds(std::int64_t m, std::int64_t n, std::int64_t k, const ComputeRate& rate,
                    int multiprocessors, const GemmForm& form) {
  const double speed = rate.peak * rate.efficiency;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n);
  const auto depth = static_cast<double>(k);
  const bool is_vector = m == 1 || n == 1;  // read through once, by kernels without tiles
  if (multiprocessors == 0 || is_vector) return 2 * rows * columns * depth / speed;
  const double half = form.half_tile;
  const std::array share{1.0, half, half * half, half * half * half};
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns);
    for (const double parts : kParts) {
      if (parts > 1 && tiles * parts > kMostWaves * multiprocessors) break;
      const double waves = tiles * parts / multiprocessors;
      const double charged =
          form.wave_rounding * std::ceil(waves) + (1 - form.wave_rounding) * std::max(1.0, waves);
      // What the parts have computed is added up.
      const double deep = parts == 1
                              ? depth + form.extra_k
                              : std::max(kLeastPart, depth / parts) + kAddingUp * form.extra_k;
      const double cost = charged * deep * tile.rows * tile.columns / share[tile.halves];
      best = best == 0 ? cost : std::min(best, cost);
    }
  }
  return best * 2 * multiprocessors / speed;
}

}  // namespace zl::sim
