// What a model is trained for: how ids become inputs and targets, and which rows count in the loss.
// Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/model_config.h"

namespace zl {

struct Objective {
  static constexpr std::int32_t kIgnored = -1;  // a target that does not count (padding)
  HeadKind kind = HeadKind::next_token;

  // Targets of a micro-batch: one for each token, or one for each sequence.
  std::int64_t targets(std::int64_t sequences, std::int64_t length) const {
    return kind == HeadKind::label ? sequences : sequences * length;
  }
  // Rows of a micro-batch that count.
  static std::int64_t counted(std::span<const std::int32_t> targets);
  // What the losses of a micro-batch's rows are divided by: its rows that count; or, where a step
  // is told as a whole, this micro-batch's even share of `of_step`, those of its `micro_batches` on
  // all ranks: then the mean of their losses is the mean over all of the step's rows. At least one
  // row, so that one without any has loss 0.
  double counted_rows(std::span<const std::int32_t> targets, std::int64_t of_step,
                      std::int64_t micro_batches) const;
};

}  // namespace zl
