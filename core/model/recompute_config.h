// Which activations are made again in the backward instead of being kept.
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zl {

enum class RecomputeMode : std::uint8_t { none, full, every_k, selective, automatic, first_blocks };

struct RecomputeConfig {
  RecomputeMode mode = RecomputeMode::none;
  std::int64_t every = 1;   // every_k: one kept input per `every` blocks; the group is recomputed
  bool attention = false;   // selective: recompute the attention core from q, k, v
  bool activation = false;  // selective: recompute the MLP activation from its input
  // selective: of a block only its input and what attention gave are kept; norms, products and the
  // activation are recomputed.
  bool products = false;
  // first_blocks: so many of each stage are recomputed; automatic: likewise, filled in by what
  // fits.
  std::int64_t blocks = 0;
  // Likewise, of each stage its own, virtual ones as well; empty: all have `blocks`. A pipeline's
  // first stages hold more micro-batches than its last.
  std::vector<std::int64_t> stage_blocks = {};

  std::int64_t blocks_of(int stage) const {
    return stage_blocks.empty() ? blocks : stage_blocks[static_cast<std::size_t>(stage)];
  }
  bool operator==(const RecomputeConfig&) const = default;
};

// Whether all of a block but its attention is recomputed.
constexpr bool keeps_attention_only(const RecomputeConfig& config) {
  return config.mode == RecomputeMode::selective && config.products;
}

// Whether the first `blocks` of a stage are recomputed and the others not.
constexpr bool recomputes_first_blocks(RecomputeMode mode) {
  return mode == RecomputeMode::automatic || mode == RecomputeMode::first_blocks;
}

}  // namespace zl
