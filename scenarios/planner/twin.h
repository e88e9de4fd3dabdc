// A plan made small enough to be trained here: the same axes of the mesh, schedule, ZeRO stage and
// recomputation on at most eight ranks of the CPU, with layers of some hundred thousand parameters.
// Ownership: values. Threads: pure functions.
#pragma once

#include "results/format.h"
#include "scenarios/files/scenario.h"

namespace zl {

inline constexpr std::int64_t kTwinRanks = 8;

// `plan`: a strategy of the scenario. Every axis that it has is two ranks long, a pipeline four
// where there is room; where shards with copies have no room for both, the copies are left out.
// Trains on the scenario's data by bytes, on this machine, with sequences so long that a step is
// predicted to take 50 ms, if 2,048 tokens are enough for that.
Scenario twin_of(const Scenario& scenario, const ImportedStrategy& plan);

// What rank 0 holds, sends and runs of the scenario's only strategy, as it is recorded without
// limits: what a real run of it says, besides times and losses. `overflows`: the steps whose update
// that run skipped.
RunResult recorded_books(const Scenario& scenario, const std::vector<std::int64_t>& overflows = {});

// The books of a training beside recorded_books(): peak bytes by tier, bytes sent along every axis,
// ops. Each row says whether both are equal.
Table books_table(const RunResult& real, const RunResult& recorded);
bool has_equal_books(const RunResult& real, const RunResult& recorded);

}  // namespace zl
