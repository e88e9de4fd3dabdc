// The strategies that a planner tries, as data: a list of values for each choice, and every
// combination of them by number. What of it can run is decided by the strategy's own checks.
// Ownership: values. Threads: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/train/strategy.h"

namespace zl::sim {

// One choice of each kind, as indices into the lists of a PlanSpace.
struct PlanPoint {
  std::uint16_t tensor = 0, sequence_parallel = 0, pipeline = 0, chunks = 0, schedule = 0;
  std::uint16_t replicas = 0, state = 0, recompute = 0, micro_batch = 0;

  bool operator==(const PlanPoint&) const = default;
};

struct PlanSpace {
  // Complete strategies of which a plan takes everything but the choices below: ZeRO stage, what is
  // offloaded, optimizer, types.
  std::vector<Strategy> states;
  std::vector<std::int64_t> tensor{1};
  std::vector<bool> sequence_parallel{false};
  std::vector<std::int64_t> pipeline{1};  // ranks
  std::vector<std::int64_t> chunks{1};    // virtual stages
  std::vector<PipelineKind> schedules{PipelineKind::one_f_one_b};
  std::vector<std::int64_t> replicas{1};
  std::vector<RecomputeConfig> recompute{RecomputeConfig{}};
  std::vector<std::int64_t> micro_batch{1};
  std::int64_t ranks = 1;
  std::int64_t global_batch = 1;    // sequences a step, of all ranks
  bool recomputes_by_stage = true;  // automatic recomputation has a number for each stage
  // Of the model whose embedding and head may count as a layer each where stages are equal only so;
  // 0: they never do.
  std::int64_t layers = 0;

  // Every combination, those included that cannot run.
  std::int64_t size() const;
  PlanPoint at(std::int64_t index) const;
  std::uint64_t index(const PlanPoint& point) const;  // of at()

  // Data-parallel ranks and micro-batches a step; nullopt where ranks or batch cannot be divided
  // so.
  struct Division {
    std::int64_t data = 1, micro_batches = 1;
  };
  std::optional<Division> division(const PlanPoint& point) const;
  LayerSplit split(std::int64_t stages) const;
  // Of a point that has a division; `blocks` of each stage where automatic recomputation takes so
  // many; empty: it is left open.
  Strategy strategy(const PlanPoint& point, const std::vector<std::int64_t>& blocks = {}) const;
  // Whether such a recomputation is one of the choices.
  bool has(RecomputeMode mode) const;
  // Of which some blocks of a stage are recomputed and others not.
  bool mixes(const PlanPoint& point) const {
    return recomputes_first_blocks(recompute[point.recompute].mode);
  }
};

// Whether a choice says something there: without a pipeline there is no schedule, without a tensor
// group nothing to cut sequences over. Of those that mean the same the first in order.
bool is_canonical(const PlanSpace& space, const PlanPoint& point);

// Why the strategy cannot run, in the words of its own checks; empty: it can.
std::string conflict_of(const ModelConfig& model, const Strategy& strategy, std::int64_t ranks,
                        std::int64_t sequence_length);

// conflict_of over a space, asked as few times as its rules are about different choices: those of
// tensor group, pipeline and state do not mix. Threads: used by one thread.
class PlanRules {
 public:
  PlanRules(const ModelConfig& model, const PlanSpace& space, std::int64_t sequence_length);

  // Whether a point can run. Canonical points with a division only.
  bool allows(const PlanPoint& point, const PlanSpace::Division& division);

 private:
  enum class Answer : std::uint8_t { unknown, no, yes };
  template <class Ask>
  bool known(Answer& answer, const Ask& ask);
  bool can_run(const Strategy& strategy, std::int64_t ranks) const;
  bool can_recompute(const PlanPoint& point) const;

  const ModelConfig& model_;
  const PlanSpace& space_;
  std::int64_t sequence_;
  std::vector<Answer> tensor_, pipeline_, state_;
};

}  // namespace zl::sim
