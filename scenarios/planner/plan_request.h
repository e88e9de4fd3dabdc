// What a plan is asked for, and what a search answers.
// Ownership: values. Threads: value types; pure functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/files/overrides.h"
#include "scenarios/files/scenario.h"
#include "scenarios/planner/document.h"
#include "scenarios/planner/found_plan.h"
#include "scenarios/planner/plan_limits.h"
#include "simulator/planner/plan_space.h"

namespace zl {

enum class PlanGoal : std::uint8_t { throughput, memory };
// Throws Error{usage} naming the choices. "cost" is throughput: of equal devices the faster plan is
// the cheaper one.
PlanGoal plan_goal(const std::string& text);

struct PlanRequest {
  Scenario scenario;  // model, cluster, ranks, sequence length, precision; its strategies are what
                      // a plan is made of
  std::int64_t global_batch = 0;  // sequences a step, of all ranks
  PlanGoal goal = PlanGoal::throughput;
  std::size_t top = 10;
  PlanLimits limits;
  bool explains = true;             // what is missing where nothing fits
  bool any_will_do = false;         // whether something fits is all that is asked
  std::size_t judged_at_once = 64;  // between two looks at the bounds; the plans are the same
};

// The scenario of a plan: the catalogue's plain ZeRO stages, with and without their offload.
Scenario plan_scenario(const std::string& model, const ScenarioOverrides& overrides);
// Likewise of a document, whose strategies and micro-batches are what is asked for.
Scenario plan_scenario(const Document& document);

// What the scenario has that is worth a warning, whatever the plan: of every strategy alike.
const std::vector<std::string>& warnings_of(const PlanRequest& request);

// Error{invalid} where no mesh divides the batch, naming the nearest that does, or where the limits
// leave nothing.
sim::PlanSpace plan_space(const PlanRequest& request);

// The part of a space where most of the best are: 1F1B, the optimizer's state sharded, nothing
// offloaded. Never empty.
sim::PlanSpace likely_part(sim::PlanSpace space);

struct PlanCounts {
  std::int64_t combinations = 0;  // of the space
  std::int64_t runnable = 0;      // that a strategy's own checks accept
  std::int64_t too_large = 0;     // by a lower bound of their memory
  std::int64_t judged = 0;        // by closed forms; the others cannot be among the best
  std::int64_t fitting = 0;       // of these
  std::int64_t profiles = 0, recorded = 0;
};

struct Plans {
  std::vector<Plan> best;      // the simplest of those that equal the best, then by the goal
  std::vector<Plan> frontier;  // of those recorded: none has more throughput with less memory
  PlanCounts counts;
  double seconds = 0;
  double first_seconds = 0;  // until the first answer, that of likely_part(); 0: there was none
  std::string shortage;      // where nothing fits: what the smallest one needs, who holds it
};

struct PlanHooks {
  // So many of so many; called by the caller's thread.
  std::function<void(std::int64_t done, std::int64_t of, const char* what)> progress;
  // What is best so far, first that of likely_part(); by the caller's thread.
  std::function<void(const Plans& so_far)> found;
  const std::atomic<bool>* cancelled = nullptr;
};

}  // namespace zl
