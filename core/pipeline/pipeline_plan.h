// What every rank of a run's pipeline does: the lists, and each rank's instructions of them. Made
// once for a world and handed on to its ranks, since to time one rank's list is to time them all.
// Ownership: values. Threads: immutable.
#pragma once

#include <memory>
#include <vector>

#include "core/pipeline/pipeline_config.h"
#include "core/pipeline/schedule.h"

namespace zl {

struct PipelinePlan {
  Pipeline pipeline;                // of one stage: no lists, which no rank needs
  std::vector<Schedule> schedules;  // [rank of the pipeline]
};

// Error{invalid} as check_shape.
std::shared_ptr<const PipelinePlan> plan_pipeline(const PipelineConfig& config,
                                                  std::int64_t micro_batches);

}  // namespace zl
