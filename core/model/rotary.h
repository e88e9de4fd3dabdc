// A model's rotary positions: the table of the sequences of a batch, made when it is first asked
// for. Ownership: tables are shared with the ops that wait for them. Threads: one rank's thread.
#pragma once

#include <memory>

#include "core/model/model_config.h"
#include "core/ops/rope_table.h"

namespace zl {

class Rotary {
 public:
  explicit Rotary(const ModelConfig& config) : config_(config) {}

  // For sequences whose last token stands at position length - 1. One that turns as the last one
  // asked for is that one.
  std::shared_ptr<const RopeTable> table(std::int64_t length) {
    const std::int64_t key = rope_table_key(config_.rope_scaling, length);
    if (table_ == nullptr || key != key_) {
      key_ = key;
      table_ = std::make_shared<const RopeTable>(
          rope_table(config_.rope_theta, config_.rotary_width(), config_.rope_scaling, length));
    }
    return table_;
  }

 private:
  const ModelConfig& config_;
  std::int64_t key_ = 0;
  std::shared_ptr<const RopeTable> table_;
};

}  // namespace zl
