// Memory and step time of a configuration put together from profiles of its stages, in microseconds
// instead of a recording.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/planner/pipeline_form.h"
#include "simulator/planner/stage_passes.h"

namespace zl::sim {

struct ClosedForm {
  std::int64_t memory = 0;  // device bytes of the rank that holds most, at its peak
  std::int64_t time = 0;    // picoseconds of a step
  bool is_exact = true;     // memory, as StageProfiles::is_exact
};

// The profiles of a configuration. Of `again` are the first `blocks` layers of each stage, those
// that are recomputed.
struct MixedProfiles {
  const StageProfiles& all;
  const StageProfiles* again = nullptr;
  std::vector<std::int64_t> blocks = {};  // empty: none

  // Of one that has so many layers.
  StageMix of(std::size_t stage, std::int64_t layers) const;
  bool is_exact() const { return all.is_exact && (again == nullptr || again->is_exact); }
};

// A whole model on every data-parallel rank.
ClosedForm closed_form(const MixedProfiles& mixed, std::int64_t layers, std::int64_t micro_batches);

// Picoseconds that a pipeline's messages take.
struct PipelineLinks {
  std::vector<std::int64_t> hops;  // as PipelineCosts
  std::int64_t exchange = 0;       // of StageProfiles::exchanged
};

// layers: of each stage. left_out: micro-batches that the form stands for beside its own.
ClosedForm closed_form(const MixedProfiles& mixed, const PipelineForm& form,
                       const std::vector<std::int64_t>& layers, const PipelineLinks& links,
                       std::int64_t left_out);

}  // namespace zl::sim
