// What of a space can run, with how good each can be at best.
// Ownership: values. Threads: made by one thread, which uses all cores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/planner/plan_memory.h"
#include "scenarios/planner/plan_profiles.h"
#include "scenarios/planner/plan_request.h"
#include "simulator/planner/plan_bounds.h"

namespace zl {

struct PlanCandidate {
  sim::PlanPoint point;
  sim::PlanSpace::Division division;
  sim::PlanBound least;      // no closed form is below
  std::int64_t blocks = 0;   // of the first stage, of automatic recomputation: at least
  bool by_software = false;  // its memory is known of the software itself (PlanMemory)
};

// Of a goal: picoseconds of a step, or bytes.
inline std::int64_t goal_value(PlanGoal goal, const sim::PlanBound& bound) {
  return goal == PlanGoal::memory ? bound.memory : bound.time;
}
inline std::int64_t goal_value(PlanGoal goal, const sim::ClosedForm& form) {
  return goal == PlanGoal::memory ? form.memory : form.time;
}

// budget: 0: no limit.
bool fits(const sim::ClosedForm& form, std::int64_t budget);

// By the profiles of plain data-parallel runs: what a rank computes at least.
class PlanBounder {
 public:
  PlanBounder(const Scenario& scenario, const sim::ClusterSpec& cluster,
              const sim::PlanSpace& space, PlanProfiles& profiles)
      : space_(space),
        profiles_(profiles),
        layers_(scenario.model.layers),
        bounds_(scenario.model, cluster, space, scenario.run.sequence_length) {}

  // Makes the profiles that the candidates need, and fills in their bounds. budget: bytes of a
  // device; 0: none.
  void bound(std::vector<PlanCandidate>& candidates, std::int64_t budget = 0);
  // Sharper than a candidate's time; its pipeline's form is prepared. budget: as bound().
  std::int64_t time_of(const PlanCandidate& each, std::int64_t budget = 0) const;

 private:
  std::size_t number_of(const sim::PlanPoint& point, std::uint16_t recompute) const;
  void prepare_works(const std::vector<PlanCandidate>& candidates);
  sim::StageWorks works_of(const PlanCandidate& each, std::int64_t layers) const;
  bool has_own_blocks(const sim::PlanPoint& point) const;
  bool decides_by_rank(const sim::PlanPoint& point) const;
  std::vector<sim::LayerWork> works_of_stages(const PlanCandidate& each,
                                              const sim::PipelineForm& form,
                                              std::int64_t budget) const;
  void count_blocks(PlanCandidate& each, std::int64_t budget) const;
  std::int64_t fewest_layers(const sim::PlanPoint& point) const;
  void bound_one(PlanCandidate& each, std::int64_t budget) const;

  const sim::PlanSpace& space_;
  PlanProfiles& profiles_;
  std::int64_t layers_;
  sim::PlanBounds bounds_;
  std::vector<sim::LayerWork> works_;  // by number_of
};

struct PlanCandidates {
  std::vector<PlanCandidate> all;        // those that fit at best, by what they reach at best
  std::vector<PlanCandidate> too_large;  // by the memory that they take at least
  std::int64_t runnable = 0;
};

// budget: bytes of a device; 0: none. Error{invalid} where the batch fits no mesh.
PlanCandidates plan_candidates(const PlanRequest& request, const sim::PlanSpace& space,
                               std::int64_t budget, const PlanMemory& memory, PlanBounder& bounder);

// A candidate whose blocks are decided, where the software's bytes decide.
struct FittingCandidate {
  PlanCandidate candidate;
  std::vector<std::int64_t> blocks = {};  // of each stage, of automatic recomputation
};

// Those of which it is not known what the software would hold, and of the others those that fit,
// with their bytes and automatic blocks.
std::vector<FittingCandidate> fitting(std::span<const PlanCandidate> some,
                                      const PlanMemory& memory);

}  // namespace zl
