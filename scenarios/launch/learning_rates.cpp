#include "scenarios/launch/learning_rates.h"

namespace zl {
namespace {}  // namespace

std::optional<ScheduleConfig> schedule_of(const LearningRates& rates) {
  ScheduleConfig schedule;
  if (rates.way == LearningRates::Way::level && rates.warmup == 0) return schedule;
  if (rates.most <= 0 || (rates.way != LearningRates::Way::level && rates.steps <= rates.warmup)) {
    return std::nullopt;
  }
  schedule.warmup_log = false;
  schedule.warmup_num_steps = rates.warmup;
  if (rates.way == LearningRates::Way::cosine) {
    schedule.kind = ScheduleKind::warmup_cosine_lr;
    schedule.total_num_steps = rates.steps;
    schedule.warmup_min_ratio = rates.first / rates.most;
    schedule.cos_min_ratio = rates.last / rates.most;
    return schedule;
  }
  schedule.kind = ScheduleKind::warmup_lr;
  schedule.warmup_min_lr = rates.first;
  schedule.warmup_max_lr = rates.most;
  if (rates.way == LearningRates::Way::level) return schedule;
  if (rates.last != rates.first) return std::nullopt;
  schedule.kind = ScheduleKind::warmup_decay_lr;
  schedule.total_num_steps = rates.steps;
  return schedule;
}

std::optional<LearningRates> learning_rates_of(const ScheduleConfig& schedule,
                                               const OptimizerConfig& optimizer) {
  LearningRates rates{.most = optimizer.lr};
  if (schedule.kind == ScheduleKind::constant) return rates;
  if (schedule.warmup_log) return std::nullopt;
  rates.warmup = schedule.warmup_num_steps;
  rates.steps = schedule.total_num_steps;
  switch (schedule.kind) {
    case ScheduleKind::warmup_cosine_lr:
      rates.way = LearningRates::Way::cosine;
      rates.first = schedule.warmup_min_ratio * optimizer.lr;
      rates.last = schedule.cos_min_ratio * optimizer.lr;
      return rates;
    case ScheduleKind::warmup_decay_lr:
      rates.way = LearningRates::Way::line;
      rates.last = schedule.warmup_min_lr;
      [[fallthrough]];
    case ScheduleKind::warmup_lr:
      rates.first = schedule.warmup_min_lr;
      rates.most = schedule.warmup_max_lr;
      return rates;
    default:
      return std::nullopt;
  }
}

}  // namespace zl
