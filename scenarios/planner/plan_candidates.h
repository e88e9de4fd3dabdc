// What of a space can run, with how good each can be at best.
// Ownership: values. Threads: made by one thread, which uses all cores.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/planner/plan_profiles.h"
#include "scenarios/planner/plan_request.h"
#include "simulator/planner/plan_bounds.h"

namespace zl {

struct PlanCandidate {
  sim::PlanPoint point;
  sim::PlanSpace::Division division;
  sim::PlanBound least;  // no closed form is below
};

// Of a goal: picoseconds of a step, or bytes.
inline std::int64_t goal_value(PlanGoal goal, const sim::PlanBound& bound) {
  return goal == PlanGoal::memory ? bound.memory : bound.time;
}
inline std::int64_t goal_value(PlanGoal goal, const sim::ClosedForm& form) {
  return goal == PlanGoal::memory ? form.memory : form.time;
}

// By the profiles of plain data-parallel runs: what a rank computes at least.
class PlanBounder {
 public:
  PlanBounder(const Scenario& scenario, const sim::ClusterSpec& cluster,
              const sim::PlanSpace& space, PlanProfiles& profiles)
      : space_(space),
        profiles_(profiles),
        bounds_(scenario.model, cluster, space, scenario.run.sequence_length) {}

  // Makes the profiles that the candidates need, and fills in their bounds.
  void bound(std::vector<PlanCandidate>& candidates);
  // Sharper than a candidate's time; its pipeline's form is prepared.
  std::int64_t time_of(const PlanCandidate& each) const;

 private:
  std::size_t number_of(const sim::PlanPoint& point) const;

  const sim::PlanSpace& space_;
  PlanProfiles& profiles_;
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
                               std::int64_t budget, PlanBounder& bounder);

}  // namespace zl
