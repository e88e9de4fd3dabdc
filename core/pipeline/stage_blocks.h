// How the blocks that a pipeline's ranks recompute lie in their stages.
// Ownership: values. Threads: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "core/pipeline/pipeline_config.h"

namespace zl {

// Of `of_ranks` blocks of each rank so many of each stage, of `layers` each: a rank's first stages
// take all they have before its next, as what they keep is longest on its way.
std::vector<std::int64_t> spread_blocks(const PipelineConfig& config,
                                        const std::vector<std::int64_t>& layers,
                                        const std::vector<std::int64_t>& of_ranks);

// One more of a rank's, where it has one that is not among them.
void add_block(const PipelineConfig& config, const std::vector<std::int64_t>& layers, int rank,
               std::vector<std::int64_t>& blocks);

// Layers of each rank, all its stages.
std::vector<std::int64_t> layers_of_ranks(const PipelineConfig& config,
                                          const std::vector<std::int64_t>& layers);

}  // namespace zl
