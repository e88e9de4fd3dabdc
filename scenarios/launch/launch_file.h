// What a launch needs besides its strategy, and what is written of both.
// Ownership: values. Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_config.h"
#include "core/train/strategy.h"

namespace zl {

// What a strategy leaves open and a launch needs.
struct LaunchFacts {
  ModelConfig model;
  std::int64_t ranks = 1, node_devices = 1;
  std::int64_t sequence_length = 1024;
  bool compiles = false;  // torch.compile, as the software that the plan was found for

  std::int64_t nodes() const { return (ranks + node_devices - 1) / node_devices; }
  std::int64_t data_ranks(const Strategy& strategy) const {
    return ranks / (strategy.pipeline.ranks * strategy.tensor.ranks);
  }
  std::int64_t global_batch(const Strategy& strategy) const {
    return strategy.micro_batch * strategy.gradient_accumulation * data_ranks(strategy);
  }
};

struct LaunchFile {
  std::string text;
  std::vector<std::string> notes;  // what the file cannot say and its user must do or know
};

}  // namespace zl
