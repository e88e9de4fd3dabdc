// How few blocks a configuration can recompute and fit, by what its ranks hold.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/planner/closed_form.h"

namespace zl::sim {

// Of each stage; nothing: it does not fit with all of them.
using FewestBlocks = std::optional<std::vector<std::int64_t>>;

// mixed: without its blocks. budget: bytes of a rank. A whole model on every data-parallel rank.
FewestBlocks fewest_blocks(const MixedProfiles& mixed, std::int64_t layers,
                           std::int64_t micro_batches, std::int64_t budget);

// by_stage: each rank of the pipeline as few as it needs, its first stages before its next, as
// spread_blocks(); else all stages the same number.
FewestBlocks fewest_blocks(const MixedProfiles& mixed, const PipelineForm& form,
                           const std::vector<std::int64_t>& layers, std::int64_t budget,
                           bool by_stage);

}  // namespace zl::sim
