// What is asked of `zerolab calibrate`. Ownership: values. Threads: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/typical_moments.h"

namespace zl {

struct CalibrationOptions {
  std::string backend = "cpu";          // or cuda
  std::vector<int> ranks;               // numbers of ranks to measure; none: 1, 2, 4; on CUDA 1
  std::vector<std::string> precisions;  // none: fp32; on CUDA bf16
  std::int64_t steps = 6;               // of each training run
  std::string nvme_path;  // folder of the runs with files; none: the system's; on CUDA no files
  sim::Moments moments = sim::Moments::typical;  // of a GPU: all
  bool tiny = false;  // toy models: tries the measurement itself, the profile means nothing
  // Called before each run: what is being measured, how many are done and how many there are, as
  // far as is known: what sim::is_settled() does not find settled is measured again.
  std::function<void(const std::string& what, int done, int total)> progress;
  // Called after the last: how much longer than predicted by the other runs each took, less one.
  std::function<void(const std::string& what, double error)> left_out;
};

}  // namespace zl
