// The angles of rotary positions (Su et al. 2021), computed once in double for all kernels.
// Ownership: values. Threads: pure functions; a table is immutable once it is shared.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/rope_scaling.h"

namespace zl {

// Of the first width() elements of a head the pairs (j, j + width() / 2) are turned by position *
// frequencies[j] radians, and scaled: cosine and sine are multiplied by `multiplier`.
struct RopeTable {
  std::vector<double> frequencies;
  double multiplier = 1;

  std::int64_t width() const { return 2 * static_cast<std::int64_t>(frequencies.size()); }
};

// theta^(-2j/width), stretched for sequences of `length` positions (longrope, dynamic: length
// decides). longrope has factors for width / 2 pairs.
RopeTable rope_table(double theta, std::int64_t width, const RopeScaling& scaling,
                     std::int64_t length);

// Sequences of equal numbers have one table.
std::int64_t rope_table_key(const RopeScaling& scaling, std::int64_t length);

}  // namespace zl
