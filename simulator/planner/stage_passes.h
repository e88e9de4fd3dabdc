// The passes of one stage put together from profiles: what each holds, and what it is to the
// streams.
// Ownership: refer to the profiles. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "simulator/planner/pipeline_order.h"
#include "simulator/planner/stage_profile.h"

namespace zl::sim {

// The profiles of a stage. Of `again` are its first `blocks` layers, of which there are more: those
// that are recomputed.
struct StageMix {
  const StageProfiles& kept;
  const StageProfiles* again = nullptr;
  std::int64_t blocks = 0;
};

// A pass, and what of it is of its last unit.
struct PassSegments {
  Segment all, end;

  // With weights of the pass after, which are brought in its last unit.
  std::int64_t peak(std::int64_t brought) const {
    return std::max(all.peak, all.net - end.net + end.peak + brought);
  }
};

struct StagePasses {
  std::array<PassSegments, kStagePasses> passes;
  StageWeights weights;

  const Segment& of(StagePass pass) const { return passes[static_cast<std::size_t>(pass)].all; }
};

// has_rank: no other stage is on its rank.
StagePasses passes_of(const StageMix& mix, StagePlace place, std::int64_t layers, bool has_rank);
StageCosts costs_of(const StageMix& mix, StagePlace place, std::int64_t layers);

StagePlace place_of(std::size_t stage, std::size_t stages);

}  // namespace zl::sim
