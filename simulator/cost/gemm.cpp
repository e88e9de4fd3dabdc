#include "simulator/cost/gemm.h"

#include <algorithm>
#include <cmath>

namespace zl::sim {
namespace {

// Output tile and the share of the device's GEMM rate its inner loop reaches: small tiles re-read
// their operands more often.
struct Tile {
  double rows, columns, efficiency;
};
constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.85},
                           {128, 64, 0.7},  {64, 128, 0.7},  {64, 64, 0.6}};
// Filling and draining a tile's pipeline costs as much as this many more k.
constexpr double kExtraK = 192;
// A last wave that is not full costs this part of a full one: kernels split k or share tiles.
constexpr double kWaveRounding = 0.5;

}  // namespace

double gemm_seconds(std::int64_t m, std::int64_t n, std::int64_t k, const ComputeRate& rate,
                    int multiprocessors) {
  const double speed = rate.peak * rate.efficiency;
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n);
  const auto depth = static_cast<double>(k);
  if (multiprocessors == 0) return 2 * rows * columns * depth / speed;
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns);
    const double waves = tiles / multiprocessors;
    const double charged =
        kWaveRounding * std::ceil(waves) + (1 - kWaveRounding) * std::max(1.0, waves);
    const double cost = charged * tile.rows * tile.columns / tile.efficiency;
    best = best == 0 ? cost : std::min(best, cost);
  }
  return best * 2 * (depth + kExtraK) * multiprocessors / speed;
}

}  // namespace zl::sim
