#include "core/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

// DeepSpeed's OneCycle fixes beta2 while it cycles beta1.
constexpr double kOneCycleBeta2 = 0.99;

void require_positive(const char* key, std::int64_t value) {
  if (value > 0) return;
  throw Error(ErrorCode::invalid, std::string("scheduler.params.") + key + ": " +
                                      std::to_string(value) +
                                      " is not a positive number of steps; give 1 or more");
}

void check(const ScheduleConfig& config) {
  switch (config.kind) {
    case ScheduleKind::constant:
      break;
    case ScheduleKind::warmup_decay_lr:
    case ScheduleKind::warmup_cosine_lr:
      require_positive("total_num_steps", config.total_num_steps);
      [[fallthrough]];
    case ScheduleKind::warmup_lr:
      if (config.warmup_num_steps != 0) {  // 0, 1: two, as DeepSpeed has it
        require_positive("warmup_num_steps", config.warmup_num_steps);
      }
      break;
    case ScheduleKind::one_cycle:
      require_positive("cycle_first_step_size", config.cycle_first_step_size);
      if (config.cycle_second_step_size != 0) {
        require_positive("cycle_second_step_size", config.cycle_second_step_size);
      }
      if (config.decay_step_size != 0) require_positive("decay_step_size", config.decay_step_size);
      break;
    case ScheduleKind::lr_range_test:
      require_positive("lr_range_test_step_size", config.lr_range_test_step_size);
      break;
    case ScheduleKind::exponential:
      break;
  }
}

}  // namespace

LrSchedule::LrSchedule(const ScheduleConfig& schedule, const OptimizerConfig& optimizer)
    : config_(schedule),
      base_lr_(optimizer.lr),
      warmup_steps_(std::max<std::int64_t>(2, schedule.warmup_num_steps)),
      cycle_steps_(schedule.cycle_first_step_size + (schedule.cycle_second_step_size != 0
                                                         ? schedule.cycle_second_step_size
                                                         : schedule.cycle_first_step_size)) {
  check(schedule);
}

double LrSchedule::lr() const {
  const double span = config_.warmup_max_lr - config_.warmup_min_lr;
  switch (config_.kind) {
    case ScheduleKind::constant:
      return base_lr_;
    case ScheduleKind::warmup_lr:
      return config_.warmup_min_lr + span * (index_ < warmup_steps_ ? warmup(0.0) : 1.0);
    case ScheduleKind::warmup_decay_lr:
      return config_.warmup_min_lr + span * (index_ < warmup_steps_ ? warmup(0.0) : decay_lr());
    case ScheduleKind::warmup_cosine_lr:
      return base_lr_ * cosine_ratio();
    case ScheduleKind::one_cycle:
      return one_cycle_lr();
    case ScheduleKind::lr_range_test:
      return range_test_lr();
    case ScheduleKind::exponential:
      return base_lr_ * std::pow(config_.gamma, static_cast<double>(index_ + 1));
  }
  return base_lr_;
}

// The share of the way up, from `start` to 1.
double LrSchedule::warmup(double start) const {
  if (index_ < 0) return start;
  const auto done = static_cast<double>(index_);
  const auto steps = static_cast<double>(warmup_steps_);
  const double gamma = config_.warmup_log ? std::log(done + 1.0) / std::log(steps) : done / steps;
  return start + (1.0 - start) * gamma;
}

double LrSchedule::decay_lr() const {
  const std::int64_t left = config_.total_num_steps - index_;
  const std::int64_t all = std::max<std::int64_t>(1, config_.total_num_steps - warmup_steps_);
  return std::max(0.0, static_cast<double>(left) / static_cast<double>(all));
}

double LrSchedule::cosine_ratio() const {
  if (index_ < 0) return 0.0;
  if (index_ < warmup_steps_) return warmup(config_.warmup_min_ratio);
  const std::int64_t all = std::max<std::int64_t>(1, config_.total_num_steps - warmup_steps_);
  const double progress =
      std::min(1.0, static_cast<double>(index_ - warmup_steps_ + 1) / static_cast<double>(all));
  const double wave = (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  return config_.cos_min_ratio + (1.0 - config_.cos_min_ratio) * wave;
}

// 0 at both ends of the cycle, 1 at its peak; stairs hold it until the next is reached.
double LrSchedule::cycle_fraction() const {
  const std::int64_t position = (index_ + 1) % cycle_steps_;
  const std::int64_t first = config_.cycle_first_step_size;
  const bool rising = position <= first;
  const std::int64_t done = rising ? position : cycle_steps_ - position;
  const std::int64_t half = rising ? first : cycle_steps_ - first;
  const std::int64_t stairs =
      rising ? config_.cycle_first_stair_count : config_.cycle_second_stair_count;
  const double fraction = static_cast<double>(done) / static_cast<double>(half);
  if (stairs <= 0) return fraction;
  const auto count = static_cast<double>(stairs);
  return std::floor(static_cast<double>(done) * count / static_cast<double>(half)) / count;
}

double LrSchedule::one_cycle_lr() const {
  if (index_ < cycle_steps_) {
    return config_.cycle_min_lr + (config_.cycle_max_lr - config_.cycle_min_lr) * cycle_fraction();
  }
  if (config_.decay_step_size == 0) return config_.cycle_min_lr;
  const double intervals =
      static_cast<double>(index_ - cycle_steps_ + 1) / static_cast<double>(config_.decay_step_size);
  return config_.cycle_min_lr / (1.0 + config_.decay_lr_rate * intervals);
}

std::optional<double> LrSchedule::beta1() const {
  if (config_.kind != ScheduleKind::one_cycle || !config_.cycle_momentum) return std::nullopt;
  if (index_ < 0) return config_.cycle_min_mom;
  if (index_ < cycle_steps_) {
    return config_.cycle_max_mom -
           (config_.cycle_max_mom - config_.cycle_min_mom) * cycle_fraction();
  }
  if (config_.decay_step_size == 0) return config_.cycle_max_mom;
  const double intervals =
      static_cast<double>(index_ - cycle_steps_ + 1) / static_cast<double>(config_.decay_step_size);
  return config_.cycle_max_mom * (1.0 + config_.decay_mom_rate * intervals);
}

std::optional<double> LrSchedule::beta2() const {
  if (!beta1()) return std::nullopt;
  return kOneCycleBeta2;
}

double LrSchedule::range_test_lr() const {
  double intervals =
      static_cast<double>(index_ + 1) / static_cast<double>(config_.lr_range_test_step_size);
  if (config_.lr_range_test_staircase) intervals = std::floor(intervals);
  return config_.lr_range_test_min_lr * (1.0 + config_.lr_range_test_step_rate * intervals);
}

}  // namespace zl
