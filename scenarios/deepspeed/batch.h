// The batch triangle: train_batch_size = micro batch * accumulation * ranks.
// Ownership: values. Threads: pure function of its keys.
#pragma once

#include <cstdint>

#include "scenarios/deepspeed/values.h"

namespace zl {

struct Batch {
  std::int64_t micro = 1, accumulation = 1;  // of one rank
  std::int64_t ranks = 1;                    // that it was made for
};

Batch build_batch(Keys& keys, const ImportContext& context);

}  // namespace zl
