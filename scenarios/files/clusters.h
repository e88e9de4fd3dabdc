// Clusters and software by name: the catalogue, this machine's calibration, or a file.
// Ownership: values. Threads: pure functions of the files they read.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/files/scenario.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/cluster/software.h"
#include "simulator/json/reading.h"

namespace zl {

// A cluster by catalogue name, "NxGPU", "local", "local-cuda" or the path of a JSON file. This
// machine has the host memory that machine_memory() finds now.
sim::ClusterSpec load_cluster(const std::string& name_or_path);

// This core's own profile, and what GPUs run where nobody says: most who train on them.
inline constexpr const char* kOwnSoftware = "zerolab";
inline constexpr const char* kDefaultSoftware = "torch-fsdp2-compile";

// The software that a scenario's simulated runs have: run.software, else the default on GPUs that
// nobody measured. "": a measured machine or a processor, which run this core.
std::string scenario_software(const Scenario& scenario);
// Whether the software that the scenario names can be told how many blocks each stage of a pipeline
// recomputes: one whose profile does not say what it can do, or none.
bool recomputes_by_stage(const Scenario& scenario);

// The cluster that a scenario names or gives, with as many devices as that says and no software.
sim::ClusterSpec scenario_hardware(const Scenario& scenario);
// The cluster that a scenario's simulated runs are priced on, under its software.
sim::ClusterSpec scenario_cluster(const Scenario& scenario);

// Device bytes of one rank that a scenario may use on the cluster, at most its share of the machine
// where the device is the host; 0: unlimited.
std::int64_t memory_budget(const Scenario& scenario, const sim::ClusterSpec& cluster);

// What other software reaches on a GPU, by catalogue name or the path of a JSON file.
sim::Software load_software(const std::string& name_or_path);
std::string software_text(const std::string& name_or_path);  // its file
Json software_json(const std::string& name_or_path);         // with what its base says

// Where `zerolab calibrate` writes what a cluster of this machine is: "local" (its processor) or
// "local-cuda" (its GPUs).
std::string local_cluster_path(const std::string& cluster = "local");

}  // namespace zl
