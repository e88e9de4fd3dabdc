// What the machine and the model make of what a scenario asks for: errors and warnings.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scenarios/files/scenario.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl {

// The scenario's cluster. Throws Error{invalid} for more ranks than its name has devices: that
// would be another cluster.
sim::ClusterSpec checked_cluster(const Scenario& scenario);

// A warning where the device has less memory than run.device_memory; else nothing.
std::vector<std::string> memory_cut(const Scenario& scenario, const sim::ClusterSpec& cluster);

// A warning where sequences are longer than the model's max_sequence, which learned positions
// forbid and rotary ones do not; else nothing.
std::vector<std::string> beyond_model(const Scenario& scenario);

// A warning where the default sequence length is a sliding window; else nothing.
std::vector<std::string> sequence_cut(const Scenario& scenario);

// Adds a warning where the devices of the cluster, called `name`, are no faster in the strategy's
// precision.
void warn_of_precision(const sim::ClusterSpec& cluster, const std::string& name,
                       ImportedStrategy& imported);

}  // namespace zl
