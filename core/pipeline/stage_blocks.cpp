#include "core/pipeline/stage_blocks.h"

#include <algorithm>

namespace zl {
namespace {

Pipeline placed(const PipelineConfig& config) {
  return {.kind = config.schedule,
          .shape = {.ranks = static_cast<int>(config.ranks),
                    .chunks = static_cast<int>(config.virtual_stages)},
          .work = {}};
}

}  // namespace

std::vector<std::int64_t> spread_blocks(const PipelineConfig& config,
                                        const std::vector<std::int64_t>& layers,
                                        const std::vector<std::int64_t>& of_ranks) {
  const Pipeline pipeline = placed(config);
  std::vector<std::int64_t> blocks(layers.size(), 0);
  for (int rank = 0; rank < config.ranks; ++rank) {
    std::int64_t left = of_ranks[rank];
    for (int chunk = 0; chunk < config.virtual_stages; ++chunk) {
      const int stage = pipeline.stage_of(rank, chunk);
      blocks[stage] = std::min(left, layers[stage]);
      left -= blocks[stage];
    }
  }
  return blocks;
}

void add_block(const PipelineConfig& config, const std::vector<std::int64_t>& layers, int rank,
               std::vector<std::int64_t>& blocks) {
  const Pipeline pipeline = placed(config);
  for (int chunk = 0; chunk < config.virtual_stages; ++chunk) {
    const int stage = pipeline.stage_of(rank, chunk);
    if (blocks[stage] == layers[stage]) continue;
    ++blocks[stage];
    return;
  }
}

std::vector<std::int64_t> layers_of_ranks(const PipelineConfig& config,
                                          const std::vector<std::int64_t>& layers) {
  const Pipeline pipeline = placed(config);
  std::vector<std::int64_t> sums(config.ranks, 0);
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    sums[pipeline.rank_of(stage)] += layers[stage];
  }
  return sums;
}

}  // namespace zl
