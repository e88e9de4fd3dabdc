// Dropout as a pure function of the global element index.
#pragma once

#include <cstdint>

#include "core/base/rng.h"

namespace zl {

// Element i is kept when random_uniform(key, base + i) >= p, and scaled by 1 / (1 - p).
// `base` is the global index of the tensor's first element, so that the mask does not depend on how
// the batch is cut over ranks. p = 0: no dropout.
struct DropoutSpec {
  float p = 0;
  RngKey key;
  std::uint64_t base = 0;
};

}  // namespace zl
