// A simulated run in its two halves: record a strategy once, price the recording on any cluster.
// Ownership: a Recording owns its trace. Threads: pure functions; a Recording is free to be priced
// from several threads at once.
#pragma once

#include "core/train/rank_program.h"
#include "scenarios/files/scenario.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/timeline.h"

namespace zl {

struct Recording {
  Strategy strategy;
  RunResult books;                      // bytes, collectives, ops; times are zero
  Trace trace;                          // of the first kSteadySteps steps of each kind
  std::vector<std::int64_t> stand_ins;  // RankOutcome's
};

// What the scenario says about the program of a rank.
ProgramOptions program_options(const Scenario& scenario);

// Runs the program of rank 0 on the recording device. device.memory is the budget (0: none), beside
// device.host_memory; device.workspace is lent to libraries. Throws OutOfMemory.
Recording record_run(const Scenario& scenario, const Strategy& strategy, DeviceProperties device,
                     ProgramOptions options);

// The recording's result with times; `timeline`, when given, gets when each event of it runs.
RunResult price_run(const Scenario& scenario, const Recording& recording,
                    const sim::ClusterSpec& cluster, sim::Timeline* timeline = nullptr);

// Model FLOPs, and where a step time is known also tokens per second and MFU. `peak_flops`: of all
// devices together, 0 when unknown.
void write_rates(const Scenario& scenario, const Strategy& strategy, double peak_flops,
                 RunResult& result);

// What a result says about where it comes from.
void write_origin(const Scenario& scenario, const ImportedStrategy& imported,
                  const std::string& backend, RunResult& result);

}  // namespace zl
