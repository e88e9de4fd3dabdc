#include "core/train/run_result.h"

#include <numeric>

namespace zl {

const char* name_of(Outcome outcome) {
  constexpr const char* kNames[] = {"ok", "out_of_memory", "infeasible", "failed"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::int64_t TaggedBytes::total() const {
  return std::accumulate(tag.begin(), tag.end(), std::int64_t{0});
}

}  // namespace zl
