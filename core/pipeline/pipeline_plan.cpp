#include "core/pipeline/pipeline_plan.h"

#include "core/pipeline/pipeline_rounds.h"

namespace zl {

std::shared_ptr<const PipelinePlan> plan_pipeline(const PipelineConfig& config,
                                                  std::int64_t micro_batches) {
  const PipelineShape shape{.ranks = static_cast<int>(config.ranks),
                            .micro_batches = static_cast<int>(micro_batches),
                            .chunks = static_cast<int>(config.virtual_stages)};
  auto plan = std::make_shared<PipelinePlan>();
  // A whole model runs one micro-batch after the other, which no list needs to say.
  if (shape.ranks * shape.chunks == 1) {
    plan->schedules = {whole_model_schedule(micro_batches)};
    return plan;
  }
  plan->pipeline = make_pipeline(config.schedule, shape);
  plan->schedules = pipeline_schedules(plan->pipeline);
  for (Schedule& schedule : plan->schedules) schedule.steady = steady_part(schedule.body);
  return plan;
}

}  // namespace zl
