#include "core/model/objective.h"

#include <algorithm>

namespace zl {

std::int64_t Objective::counted(std::span<const std::int32_t> targets) {
  const auto ignored = std::count(targets.begin(), targets.end(), kIgnored);
  return static_cast<std::int64_t>(targets.size()) - ignored;
}

double Objective::counted_rows(std::span<const std::int32_t> targets, std::int64_t of_step,
                               std::int64_t micro_batches) const {
  if (of_step > 0) return static_cast<double>(of_step) / static_cast<double>(micro_batches);
  return static_cast<double>(std::max<std::int64_t>(1, counted(targets)));
}

}  // namespace zl
