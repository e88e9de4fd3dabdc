// A simulated run in its two halves: record a strategy once, price the recording on any cluster.
// Ownership: values. Threads: pure functions; a Recording is free to be priced from several threads
// at once.
#pragma once

#include <string>
#include <vector>

#include "core/train/rank_program.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/recording.h"
#include "simulator/cluster/cluster_spec.h"

namespace zl {

// Which ranks are recorded: one of each pipeline stage, or one of each class that differs at all.
// Within a stage they differ by the padding of their chunks: in a step the first rank runs every op
// that another does, on as many elements or more, with the same bytes held and sent, so nobody
// makes it wait and what a result reports is its own.
enum class RecordedRanks : std::uint8_t { stages, classes };

// What the scenario says about the program of a rank.
ProgramOptions program_options(const Scenario& scenario);

// Runs the program of one rank of each class on the recording device. device.memory is the budget
// (0: none), beside device.host_memory; device.workspace is lent to libraries. Throws OutOfMemory.
Recording record_run(const Scenario& scenario, const Strategy& strategy, DeviceProperties device,
                     ProgramOptions options, RecordedRanks recorded = RecordedRanks::stages);

// Of each rank of the pipeline whether its program runs within the limits.
std::vector<bool> ranks_within(const Scenario& scenario, const Strategy& strategy,
                               const DeviceProperties& device, const ProgramOptions& options);

// The recording's result with times, all classes priced together; `timelines`, when given, gets
// when each event of each of rank_traces() runs. Throws Error{infeasible} when the classes wait for
// each other.
RunResult price_run(const Scenario& scenario, const Recording& recording,
                    const sim::ClusterSpec& cluster,
                    std::vector<sim::Timeline>* timelines = nullptr);

// Model FLOPs, and where a step time is known also tokens per second and MFU. `peak_flops`: of all
// devices together, 0 when unknown.
void write_rates(const Scenario& scenario, const Strategy& strategy, double peak_flops,
                 RunResult& result);

// What a result says about where it comes from.
void write_origin(const Scenario& scenario, const ImportedStrategy& imported,
                  const std::string& backend, RunResult& result);

// What a program takes of memory without limits, from the books of a recording that had none; of
// the recording itself see judge.h, where slabs are large beside it.
MemoryNeed memory_need(const RunResult& unlimited);

// "needs 81.00 GiB reserved: 72.46 GiB in use at the peak and 8.54 GiB lost to fragmentation"; with
// what that says beside a device of `capacity` bytes, and the host memory and files besides.
std::string need_text(const MemoryNeed& need, std::int64_t capacity);

// RunResult::priced_from of a cluster's predictions of what computes in `dtype`.
const char* price_basis(const sim::ClusterSpec& cluster, DType dtype);

}  // namespace zl
