// "I run this today": what to change first, each change by itself better than any other.
// Ownership: values. Threads: used by one thread, which uses all cores.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "results/format.h"
#include "scenarios/planner/plan_request.h"
#include "scenarios/planner/plan_tables.h"

namespace zl {

// One configuration of the way, recorded and priced within the memory.
struct WalkStep {
  std::string change;  // beside the one before: "recompute full -> none"; of the first: its name
  Plan plan;
  bool fits = true;  // else recorded with as much memory as it takes; the first alone may not
};

// From `start` by single changes: of the mesh, the schedule, ZeRO and offload, copies,
// recomputation, or the micro-batch; at the request's batch and within its limits. The states that
// are tried are the request's with the start's optimizer and types. Each step is the fastest that
// fits, by its recording, of those that closed forms rank first; it ends where none is faster.
// Error{invalid} where the start cannot run with the request's ranks and batch.
std::vector<WalkStep> walk_from(const PlanRequest& request, const ImportedStrategy& start,
                                const std::atomic<bool>* cancelled = nullptr);

// The request whose plans have the start's optimizer and types: to be held beside the way from it.
PlanRequest request_like(PlanRequest request, const ImportedStrategy& start);

// Rows of the steps with what each gains and takes. The best plan of a search, where one is given,
// comes last.
Table walk_table(const std::vector<WalkStep>& steps, const Plan* best, const TrainingBill& bill);
Json walk_json(const std::vector<WalkStep>& steps, const TrainingBill& bill);

}  // namespace zl
