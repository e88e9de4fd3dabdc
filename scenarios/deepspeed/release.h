// The DeepSpeed release that a file is read as.
// Ownership: values. Threads: pure functions.
#pragma once

#include <compare>

#include "scenarios/deepspeed/values.h"

namespace zl {

struct Release {
  int major = 0, minor = 0, patch = 0;

  auto operator<=>(const Release&) const = default;
};

// The first releases that do so (DeepSpeed's history, and the releases themselves).
inline constexpr Release kClipsByDefault{0, 19, 3};
inline constexpr Release kTakesStairs{0, 19, 4};
inline constexpr Release kRefusesZeroWarmup{0, 19, 3};
inline constexpr Release kWithoutOnebit{0, 19, 7};

// x-zerolab.deepspeed_version; rejects what is no release.
Release read_release(Keys& keys);

}  // namespace zl
