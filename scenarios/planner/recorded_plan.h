// A strategy recorded and priced as a plan: what a search shows has been through this.
// Ownership: values. Threads: pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "scenarios/files/scenario.h"
#include "scenarios/planner/found_plan.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl {

// Within the memory of the device; nothing: it does not fit. budget: as memory_budget.
std::optional<Plan> recorded_plan(const Scenario& scenario, const sim::ClusterSpec& cluster,
                                  std::int64_t budget, const ImportedStrategy& strategy);
// With as much memory as it takes. Throws Error where it cannot run at all.
Plan unlimited_plan(const Scenario& scenario, const sim::ClusterSpec& cluster, std::int64_t budget,
                    const ImportedStrategy& strategy);

// Of a plan that does not fit, one block more recomputed on each rank that is too full.
// by_stage: else of every stage.
void add_blocks(const Scenario& scenario, const sim::ClusterSpec& cluster, bool by_stage,
                const Strategy& refused, std::vector<std::int64_t>& blocks);

}  // namespace zl
