// Learning rates over a training as Megatron-LM and torchtitan have them: up in a line, then level,
// down in a line, or down a cosine to the last step.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "core/optim/optimizer_config.h"
#include "core/optim/schedule_config.h"

namespace zl {

struct LearningRates {
  enum class Way : std::uint8_t { level, line, cosine };
  Way way = Way::level;
  double first = 0, most = 0, last = 0;
  std::int64_t warmup = 0, steps = 0;  // steps: of both parts, of a way down
};

// DeepSpeed's schedule of the same course; nothing: it has none, as where a line ends elsewhere
// than it began.
std::optional<ScheduleConfig> schedule_of(const LearningRates& rates);

// What such a schedule is to other software; nothing: something else.
std::optional<LearningRates> learning_rates_of(const ScheduleConfig& schedule,
                                               const OptimizerConfig& optimizer);

}  // namespace zl
