// What no closed form of a configuration is below, in less than a microsecond: what is beyond the
// memory, or slower than enough others, is never profiled.
// Ownership: refers to the model, the cluster and the space. Threads: immutable; free to use from
// any.
#pragma once

#include <cstdint>

#include "simulator/cluster/cluster_spec.h"
#include "simulator/planner/pipeline_form.h"
#include "simulator/planner/plan_prices.h"
#include "simulator/planner/plan_space.h"
#include "simulator/planner/stage_profile.h"

namespace zl::sim {

// What a micro-batch computes and keeps on a rank, by the profile of a plain data-parallel run.
struct LayerWork {
  double forward = 0, backward = 0;              // picoseconds of a layer, both halves
  double first_forward = 0, first_backward = 0;  // of the embedding
  double last_forward = 0, last_backward = 0;    // of the head
  std::int64_t kept = 0, backward_peak = 0;      // bytes of a layer
  std::int64_t last_peak = 0;                    // the head's
};
// group: layers that are recomputed together, each of the profile's layers.
LayerWork layer_work(const StageProfiles& plain, std::int64_t group = 1);
// Of layers of which a share is recomputed.
LayerWork mixed_work(const LayerWork& kept, const LayerWork& again, double share);

// Of a point at least: which of its stages recompute is not always known.
struct StageWorks {
  LayerWork first, others;           // of the first stage, and of those behind it
  LayerWork least;                   // in bytes, of any
  std::vector<LayerWork> each = {};  // of all stages, where more is known

  explicit StageWorks(const LayerWork& all) : first(all), others(all), least(all) {}
  const LayerWork& of(std::int64_t stage) const {
    if (!each.empty()) return each[static_cast<std::size_t>(stage)];
    return stage == 0 ? first : others;
  }
};

struct PlanBound {
  std::int64_t memory = 0;  // bytes of a rank
  std::int64_t time = 0;    // picoseconds of a step
};

class PlanBounds {
 public:
  PlanBounds(const ModelConfig& model, const ClusterSpec& cluster, const PlanSpace& space,
             std::int64_t sequence_length);

  // works: of the point's tensor group, micro-batch and recomputation.
  PlanBound of(const PlanPoint& point, const PlanSpace::Division& division,
               const StageWorks& works) const;
  // Of each stage the fewest blocks that a pipeline has to recompute to fit, by what its ranks
  // hold.
  std::vector<std::int64_t> fewest_blocks(const PipelineForm& form, const PlanPoint& point,
                                          const PlanSpace::Division& division,
                                          const LayerWork& kept, const LayerWork& again,
                                          std::int64_t budget) const;
  // The time by the recurrence of the point's pipeline: a sharper bound, of some microseconds.
  // left_out: as PipelineCosts.
  std::int64_t time_by(const PipelineForm& form, const PlanPoint& point,
                       const PlanSpace::Division& division, const StageWorks& works,
                       std::int64_t left_out) const;

 private:
  struct PassTimes {
    double forward = 0, input = 0,
           weight = 0;  // the latter of backwards in halves
    double last = 0;    // what the last backward of a step adds
    double gathered = 0,
           reduced = 0;  // of the communication stream, in each pass
    double hosted = 0;   // of the host, for the gradients of each
    double sum() const { return forward + input + weight; }
  };
  std::int64_t message_bytes(const PlanPoint& point) const;
  // Of a rank of the pipeline, with so many parameters beside its layers'.
  double state_bytes(const PlanCut& cut, std::int64_t rank, double ends) const;
  std::int64_t least_memory(const PlanCut& cut, const StageWorks& works) const;
  // message: picoseconds between two stages.
  double least_time(const PlanCut& cut, const StageWorks& works, double message) const;
  PassTimes passes_of(const PlanCut& cut, const StageWorks& works, std::int64_t index) const;
  double beside_pipeline(const PlanCut& cut, const StageWorks& works) const;
  double pipeline_time(const PlanCut& cut, const StageWorks& works, double message) const;
  // Of a pipeline's time where its ranks leave their cores to others, at least.
  double least_pace(const PlanCut& cut) const;

  const ModelConfig& model_;
  const ClusterSpec& cluster_;
  const PlanPrices prices_;
  const PlanSpace& space_;
  std::int64_t sequence_;
  double block_, embedding_, head_;  // parameters
};

}  // namespace zl::sim
