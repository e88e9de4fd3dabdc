// Clusters by name: "h200" is one GPU, "1024xh100" that many in nodes of the GPU's standard size,
// "local" this machine.
// Ownership: values. Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/cluster/cluster_spec.h"

namespace zl::sim {

// Where the texts come from; the simulator itself reads no files.
struct ClusterSources {
  std::vector<std::string> gpus;                            // node types of the catalogue
  std::function<std::string(const std::string& gpu)> text;  // the JSON of one of them
  std::string local;  // what `zerolab calibrate` wrote; empty: not calibrated yet
};

// Throws Error{invalid}: a count outside 1..1,000,000, or an unknown GPU with the nearest known
// one. "local" has 1 rank until with_devices says otherwise.
ClusterSpec find_cluster(const std::string& name, const ClusterSources& sources);

// A guess at a machine with `cores` cores whose ranks are threads, with wide error bars;
// calibration turns it into a measured one.
ClusterSpec uncalibrated_local(int cores);

}  // namespace zl::sim
