// All instructions of a pipeline in one order that its ranks' lists and what they wait for allow,
// so that any costs are timed in one pass over it: a recurrence of maxima and sums.
// As the core runs them: a rank's messages go one after the other over one stream, each after what
// its list has before it. Ownership: a value. Threads: immutable.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/pipeline/pipeline_plan.h"
#include "simulator/planner/next_pass.h"
#include "simulator/planner/pass_program.h"
#include "simulator/planner/pass_reader.h"
#include "simulator/processor_sharing.h"

namespace zl::sim {

struct StageCosts {
  std::array<PassProgram, kStagePasses> passes{};
  StageWeights weights;
};

// Picoseconds, and what else a step's time follows from.
struct PipelineCosts {
  std::span<const StageCosts> stages;
  // Of a message from each rank to the next, from the last to the first.
  std::span<const std::int64_t> hops;
  std::int64_t left_out = 0;    // more micro-batches in the steady part
  double overlap_loss = 0;      // as RankStreams
  bool messages_apart = false;  // likewise
  bool reduces_last = false;    // nobody waits for reductions before the last pass
  SharedCores cores = {};       // of all ranks, as many of each of the pipeline's
};

class PipelineOrder {
 public:
  // Throws Error{infeasible} for lists that wait for ever.
  explicit PipelineOrder(const PipelinePlan& plan);

  // Picoseconds from the first pass of all ranks to the end of each rank's last.
  std::vector<std::int64_t> ends(const PipelineCosts& costs) const;
  // Picoseconds of the passes of a rank that has the whole model.
  static std::int64_t time_alone(const StageCosts& costs, std::int64_t micro_batches,
                                 double overlap_loss);

 private:
  enum class Kind : std::uint8_t { work, send, receive, release };
  struct Step {
    Kind kind = Kind::work;
    StagePass pass = StagePass::forward;
    std::uint16_t rank = 0, stage = 0, hop = 0;
    std::int32_t need = -1;  // an earlier step: what is sent, what was sent, what arrives
    NextPass next;           // that comes to weights, of its rank
    bool visits = false;     // comes to weights itself
  };
  struct Rank;
  struct Ends {
    std::vector<std::int64_t> steps, ranks;
  };
  Ends ends_of_all_at_work(const PipelineCosts& costs, std::vector<WorkingRanks>* working) const;
  static std::int64_t run(const Step& step, std::span<const StageCosts> costs, std::int64_t need,
                          Rank& rank);
  static void bring(const NextPass& next, std::span<const StageCosts> costs, Rank& rank);
  class Maker;

  std::vector<Step> steps_;
  std::size_t ranks_ = 1;
  // Two backwards of a stage in the steady part that are as many micro-batches apart as there are
  // ranks. Of the first stage and of the last: the slower one decides, as it holds up the other
  // sooner or later.
  struct Round {
    std::int32_t before = -1, after = -1;
  };
  std::vector<Round> rounds_;
};

}  // namespace zl::sim
