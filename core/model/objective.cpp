#include "core/model/objective.h"

#include <algorithm>

namespace zl {

std::int64_t Objective::counted_rows(std::span<const std::int32_t> targets) const {
  const auto ignored = std::count(targets.begin(), targets.end(), kIgnored);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(targets.size()) - ignored);
}

}  // namespace zl
