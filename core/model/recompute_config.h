// Which activations are made again in the backward instead of being kept (SPECS section 6).
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>

namespace zl {

enum class RecomputeMode : std::uint8_t { none, full, every_k, selective, automatic };

struct RecomputeConfig {
  RecomputeMode mode = RecomputeMode::none;
  std::int64_t every = 1;   // every_k: one kept input per `every` blocks; the group is recomputed
  bool attention = false;   // selective: recompute the attention core from q, k, v
  bool activation = false;  // selective: recompute the MLP activation from its input
  std::int64_t blocks =
      0;  // automatic: filled in by the planner, the first `blocks` are recomputed

  bool operator==(const RecomputeConfig&) const = default;
};

}  // namespace zl
