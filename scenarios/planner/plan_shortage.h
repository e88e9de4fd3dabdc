// Where no plan fits: what the smallest one lacks.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/deepspeed/imported_strategy.h"
#include "scenarios/files/scenario.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl {

// What the strategy needs beside what there is, and the largest holders at its peak.
std::string plan_shortage(const Scenario& scenario, const sim::ClusterSpec& cluster,
                          const ImportedStrategy& smallest);

}  // namespace zl
