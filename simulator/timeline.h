// When every event of recorded traces runs on a cluster, and what a step costs.
// Ownership: values; a RankTrace refers to its trace. Threads: price() is pure; the same traces and
// cluster give the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/trace/trace.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl::sim {

struct EventTime {
  std::int64_t start = 0, end = 0;  // picoseconds
};

// One optimizer step; the six parts add up to duration. Picoseconds.
struct StepPrice {
  static constexpr int kSetup = 0;  // steps count from 1; 0 is what comes before
  int step = kSetup;
  std::int64_t duration = 0;
  std::int64_t compute = 0;                // the compute stream runs an op, optimizer excluded
  std::int64_t exposed_communication = 0;  // it waits while a collective runs, or runs one
  std::int64_t exposed_tensor = 0, exposed_pipeline = 0;  // of that, along these axes of the mesh
  std::int64_t optimizer = 0;                             // it runs an op of Phase::optimizer
  std::int64_t offload_stall = 0;  // it waits while copies, files or host updates run
  std::int64_t bubble = 0;         // it waits while a stream waits for other ranks
  std::int64_t host = 0;           // it waits for the host, or copies
  double spread = 0;               // relative standard deviation of duration
  std::int64_t least = 0;          // no device of these peak rates is faster; 0: unknown

  // An interval that holds the true duration nine times out of ten, if errors are lognormal: a step
  // may take twice as long as was predicted, but not no time, and not less than the peaks allow.
  std::int64_t low() const;
  std::int64_t high() const;
};

struct Timeline {
  std::vector<EventTime> events;  // index as in the trace; zero length for what takes no time
  std::vector<StepPrice> steps;   // in order, setup first when the trace has it
  std::int64_t total = 0;
  // Trace indices from first to last: each ended when the next one started, or released the host
  // that issued it.
  std::vector<std::int32_t> critical_path;
};

// What one rank recorded, for itself and the ranks that run the same program.
struct RankTrace {
  const Trace* trace = nullptr;
  std::vector<int> ranks = {};  // of the world, the one that recorded first; empty: all ranks
};

// A round that came often has the times of its first; what follows it is later by what the others
// take: of several classes as long as each really took. Streams run in order; record, wait and
// synchronize order them; the host issues one event after the other. Where streams overlap, the
// event issued later loses CostModel::overlap_loss() of its progress. What was recorded before a
// trace begins counts as complete. One timeline per trace: a collective starts when all classes of
// its group can run it; a send waits for nobody, and the n-th receive from a rank on a stream of a
// group ends when that rank's n-th send does; the messages of one exchange start together. Ranks
// that no trace stands for are waited for by nobody. Error{infeasible} where classes wait for each
// other for ever or run different collectives, naming rank, event, unit and phase.
std::vector<Timeline> price(std::span<const RankTrace> traces, const ClusterSpec& cluster);

// Of one trace that stands for all ranks.
Timeline price(const Trace& trace, const ClusterSpec& cluster);

}  // namespace zl::sim
