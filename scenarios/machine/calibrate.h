// `zerolab calibrate`: measures this machine by training small models on it and fits the prices of
// "local" (its processor) or "local-cuda" (its GPUs). Ownership: values. Threads: blocks while it
// trains.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/cluster/cluster_spec.h"

namespace zl {

struct CalibrationOptions {
  std::string backend = "cpu";          // or cuda
  std::vector<int> ranks;               // numbers of ranks to measure; none: 1, 2, 4; on CUDA 1
  std::vector<std::string> precisions;  // none: fp32; on CUDA bf16
  std::int64_t steps = 6;               // of each training run
  std::string nvme_path;  // folder of the runs with files; none: the system's; on CUDA no files
  bool quiet = false;  // prices of the quietest moments of a shared processor, not of typical ones
  bool tiny = false;   // toy models: tries the measurement itself, the profile means nothing
  // Called before each run: what is being measured, how many are done and how many there are, as
  // far as is known: that of which two moments disagree is measured a third time.
  std::function<void(const std::string& what, int done, int total)> progress;
  // Called after the last: how much longer than predicted by the other runs each took, less one.
  std::function<void(const std::string& what, double error)> left_out;
};

// The fitted cluster. The models trained are not those of the catalogue. Does not write anything:
// the caller stores cluster_json() at local_cluster_path of the backend's cluster. A GPU of the
// catalogue keeps its data-sheet peak and gets the measured share of it; the peaks of other
// machines are measured ones.
sim::ClusterSpec calibrate_machine(const CalibrationOptions& options);

}  // namespace zl
