// The final weights of a run as one safetensors file.
// Ownership: owns the gathered weights until they are written. Threads: collect() runs on every
// rank at once, write() after they have ended.
#pragma once

#include <string>
#include <vector>

#include "core/train/engine.h"

namespace zl {

class WeightsFile {
 public:
  WeightsFile(std::string model, std::string strategy)
      : model_(std::move(model)), strategy_(std::move(strategy)) {}

  // Every rank takes part in gathering; rank 0 keeps the values, in place of earlier ones.
  void collect(Engine& engine);
  void write(const std::string& path) const;
  bool holds_any() const { return !values_.empty(); }  // in the process of rank 0

 private:
  std::string model_, strategy_;
  std::int64_t steps_ = 0;
  std::vector<ParameterSpec> specs_;
  std::vector<std::vector<float>> values_;
};

}  // namespace zl
