// A pipeline's schedule as the closed forms need it, whatever the stages cost: what each rank holds
// at every moment, and how long a step takes.
// Ownership: values. Threads: immutable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/pipeline_plan.h"
#include "simulator/planner/pipeline_order.h"

namespace zl::sim {

// One moment of a rank, at the begin of a pass: how many micro-batches each of its chunks holds,
// and how many messages lie there. Moments that hold the same are one.
struct HeldMoment {
  StagePass pass = StagePass::forward;
  bool is_pass = true;  // else: of messages only
  int chunk = 0;
  std::int32_t messages = 0;
  NextPass next;         // that comes to weights, after the pass or where it stands
                         // between two
  std::size_t held = 0;  // where its counts begin in PipelineForm::Rank::counts: two a chunk,
                         // forwards without a backward, and input gradients without a weight's
};

// The micro-batches of a step that its form is made of, and how many more it stands for: beyond a
// few rounds a schedule repeats itself, so that steps of many lengths share one form.
struct SteadyCount {
  std::int64_t micro_batches = 1, left_out = 0;
};
SteadyCount steady_count(PipelineKind kind, std::int64_t micro_batches, std::int64_t ranks);

class PipelineForm {
 public:
  // Of a pipeline with several stages. Throws as check_shape.
  PipelineForm(const PipelineConfig& config, std::int64_t micro_batches);

  struct Rank {
    std::vector<HeldMoment> moments;
    std::vector<std::int32_t> counts;
    std::vector<int> stages;     // of each chunk
    std::vector<int> in_flight;  // likewise

    bool has(std::size_t stage) const {
      return std::ranges::find(stages, static_cast<int>(stage)) != stages.end();
    }
  };
  std::span<const Rank> ranks() const { return ranks_; }

  std::vector<std::int64_t> ends(const PipelineCosts& costs) const { return order_.ends(costs); }

 private:
  explicit PipelineForm(const PipelinePlan& plan);

  PipelineOrder order_;
  std::vector<Rank> ranks_;
};

}  // namespace zl::sim
