// Prices of ranks that share the cores of their machine. Where they outnumber them, times of ops
// cannot tell: an op that loses its core for a slice of the scheduler takes a thousand times as
// long, and what a rank waits for are the others' ops.
// Ownership: values. Threads: pure functions.
#pragma once

#include <vector>

#include "simulator/cluster/cluster_spec.h"
#include "simulator/measured.h"

namespace zl::sim {

// The cores share out the work of all ranks equally, so each price is that of `base` times
// ranks / base.ranks. What sharing itself costs, steps tell: a factor (ranks that wait for each
// other, caches that more of them share), for each meeting of the ranks the time until those asleep
// run again, and for each wait of a stream for another that of handing over to its thread. They are
// what makes the steps of `runs`, all of `ranks` ranks, come out best; without runs 1, 0 and 0.
// `base` has ranks that do not outnumber the cores of `machine`, and none of their waiting for each
// other in the prices of its collectives.
RankCoefficients share_cores(const RankCoefficients& base, int ranks,
                             const std::vector<MeasuredTrace>& runs, const ClusterSpec& machine);

}  // namespace zl::sim
