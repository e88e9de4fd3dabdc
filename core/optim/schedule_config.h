// How the learning rate moves. Names and defaults are DeepSpeed's (runtime/lr_schedules.py).
// Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>

namespace zl {

enum class ScheduleKind : std::uint8_t {
  constant,
  warmup_lr,
  warmup_decay_lr,
  warmup_cosine_lr,
  one_cycle,
  lr_range_test,
  exponential  // torch.optim.lr_scheduler.ExponentialLR
};

// Parameters of every schedule; unused ones are ignored by the other kinds.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  double warmup_min_lr = 0.0;
  double warmup_max_lr = 1e-3;
  std::int64_t warmup_num_steps = 1000;
  bool warmup_log = true;  // warmup_type log | linear
  std::int64_t total_num_steps = 0;
  double warmup_min_ratio = 0.0;
  double cos_min_ratio = 1e-4;
  double cycle_min_lr = 0.0;
  double cycle_max_lr = 0.0;
  double decay_lr_rate = 0.0;
  std::int64_t cycle_first_step_size = 2000;
  std::int64_t cycle_second_step_size = 0;   // 0: equal to the first
  std::int64_t cycle_first_stair_count = 0;  // 0: no stairs
  std::int64_t cycle_second_stair_count = 0;
  std::int64_t decay_step_size = 0;
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0.0;
  double lr_range_test_min_lr = 1e-3;
  std::int64_t lr_range_test_step_size = 2000;
  double lr_range_test_step_rate = 1.0;
  bool lr_range_test_staircase = false;
  double gamma = 1.0;  // exponential: the factor from one step's rate to the next one's

  bool operator==(const ScheduleConfig&) const = default;
};

}  // namespace zl
