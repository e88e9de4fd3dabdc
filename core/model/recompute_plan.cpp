#include "core/model/recompute_plan.h"

#include <algorithm>

namespace zl {

RecomputePlan::RecomputePlan(const RecomputeConfig& config, int layers, int stage)
    : drop_attention_(config.mode == RecomputeMode::selective && config.attention),
      drop_activation_(config.mode == RecomputeMode::selective && config.activation),
      keeps_attention_(keeps_attention_only(config)) {
  const int width =
      config.mode == RecomputeMode::every_k ? std::max(1, static_cast<int>(config.every)) : 1;
  const std::int64_t first_blocks =
      recomputes_first_blocks(config.mode) ? config.blocks_of(stage) : 0;
  for (int begin = 0; begin < layers; begin += width) {
    const bool recomputed = config.mode == RecomputeMode::full ||
                            config.mode == RecomputeMode::every_k || keeps_attention_ ||
                            begin < first_blocks;
    groups_.push_back({begin, std::min(begin + width, layers), recomputed});
  }
}

}  // namespace zl
