// `zerolab calibrate`: measures this machine by training small models on it and fits the prices of
// "local". Ownership: values. Threads: blocks while it trains.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/cluster/cluster_spec.h"

namespace zl {

struct CalibrationOptions {
  std::vector<int> ranks{1, 2, 4};  // numbers of ranks to measure
  std::vector<std::string> precisions{"fp32"};
  std::int64_t steps = 8;  // of each training run
  // Called before each run: what is being measured, how many are done and how many there are.
  std::function<void(const std::string& what, int done, int total)> progress;
};

// The fitted cluster, named "local". The models trained are not those of the catalogue. Does not
// write anything: the caller stores cluster_json() at local_cluster_path().
sim::ClusterSpec calibrate_local(const CalibrationOptions& options);

}  // namespace zl
