#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "scenarios/deepspeed/builder.h"

namespace zl {
namespace {

struct ScheduleType {
  std::string_view name;
  ScheduleKind kind;
  std::string_view params;
};

constexpr std::array kTypes = {
    ScheduleType{"WarmupLR", ScheduleKind::warmup_lr,
                 "warmup_min_lr warmup_max_lr warmup_num_steps warmup_type last_batch_iteration"},
    ScheduleType{"WarmupDecayLR", ScheduleKind::warmup_decay_lr,
                 "total_num_steps warmup_min_lr warmup_max_lr warmup_num_steps warmup_type "
                 "last_batch_iteration"},
    ScheduleType{"WarmupCosineLR", ScheduleKind::warmup_cosine_lr,
                 "total_num_steps warmup_min_ratio warmup_num_steps cos_min_ratio warmup_type "
                 "last_batch_iteration"},
    ScheduleType{"OneCycle", ScheduleKind::one_cycle,
                 "cycle_min_lr cycle_max_lr decay_lr_rate cycle_first_step_size "
                 "cycle_second_step_size cycle_first_stair_count cycle_second_stair_count "
                 "decay_step_size cycle_momentum cycle_min_mom cycle_max_mom decay_mom_rate "
                 "last_batch_iteration"},
    ScheduleType{"LRRangeTest", ScheduleKind::lr_range_test,
                 "lr_range_test_min_lr lr_range_test_step_size lr_range_test_step_rate "
                 "lr_range_test_staircase last_batch_iteration"},
};

bool takes(std::string_view params, std::string_view name) {
  return (" " + std::string(params) + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

}  // namespace

void DeepSpeedBuilder::build_schedule() {
  const std::string section = "scheduler.params.";
  if (!is_set("scheduler.type")) {
    record("scheduler.type", "constant", EffectStatus::defaulted,
           "default: constant learning rate");
    for (const GivenKey& key : keys_) {
      if (key.rejection.empty() && key.path.starts_with(section)) {
        reject(key.path, "given without scheduler.type");
      }
    }
    return;
  }
  const std::string name = text("scheduler.type");
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&name](const ScheduleType& t) { return t.name == name; });
  if (type == kTypes.end()) {
    std::vector<std::string> known;
    for (const ScheduleType& t : kTypes) known.emplace_back(t.name);
    const bool cosine = name.starts_with("Cosine");
    reject("scheduler.type", "\"" + name + "\" is not one of " + join(known, ", ") +
                                 "; the nearest is \"" +
                                 (cosine ? "WarmupCosineLR" : nearest(name, known)) + "\"");
    mark_unused(section, "a parameter of " + name);
    return;
  }
  for (const GivenKey& key : keys_) {
    if (!key.rejection.empty() || !key.path.starts_with(section)) continue;
    if (!takes(type->params, std::string_view(key.path).substr(section.size()))) {
      reject(key.path, "not a parameter of " + name + "; it takes " + std::string(type->params));
    }
  }
  out_.strategy.schedule.kind = type->kind;
  if (type->kind == ScheduleKind::one_cycle) return build_one_cycle();
  if (type->kind == ScheduleKind::lr_range_test) return build_range_test();
  build_warmup(name);
}

void DeepSpeedBuilder::build_warmup(const std::string& type) {
  ScheduleConfig& s = out_.strategy.schedule;
  const std::string params = "scheduler.params.";
  const auto steps = static_cast<double>(std::max<std::int64_t>(context_.steps, 1));
  const AutoRule warmup{std::clamp(steps / 10, 1.0, 1000.0), "a tenth of run.steps, at most 1000"};
  s.warmup_num_steps = integer(params + "warmup_num_steps", context_.steps > 0 ? &warmup : nullptr);
  const std::string shape = text(params + "warmup_type");
  s.warmup_log = shape == "log" || shape == "LOG" || shape == "Log";
  if (s.kind == ScheduleKind::warmup_cosine_lr) {
    s.warmup_min_ratio = number(params + "warmup_min_ratio");
    s.cos_min_ratio = number(params + "cos_min_ratio");
  } else {
    s.warmup_min_lr = number(params + "warmup_min_lr");
    const AutoRule rate{out_.strategy.optimizer.lr, "the optimizer's learning rate"};
    s.warmup_max_lr = number(params + "warmup_max_lr", &rate);
    const GivenKey* maximum = given(params + "warmup_max_lr");
    if (maximum != nullptr && maximum->value->is_null()) {
      s.warmup_max_lr = rate.value;
      record(maximum->path, rate.value, EffectStatus::honoured, "null: " + rate.why);
    }
    if (s.warmup_min_lr > s.warmup_max_lr) {
      reject(params + "warmup_min_lr", "above scheduler.params.warmup_max_lr; exchange the two");
    }
  }
  if (s.kind == ScheduleKind::warmup_lr) return;
  const std::string total = params + "total_num_steps";
  if (given(total) == nullptr) {
    reject(total, "missing, but " + type + " needs it; give a number or \"auto\"");
    return;
  }
  const AutoRule rule{steps, "run.steps"};
  s.total_num_steps = integer(total, &rule);
}

void DeepSpeedBuilder::build_one_cycle() {
  ScheduleConfig& s = out_.strategy.schedule;
  const std::string params = "scheduler.params.";
  for (const char* name : {"cycle_min_lr", "cycle_max_lr"}) {
    if (!is_set(params + name))
      reject(params + name, "missing, but OneCycle needs it; give a number");
  }
  if (!is_set(params + "cycle_min_lr") || !is_set(params + "cycle_max_lr")) return;
  s.cycle_min_lr = number(params + "cycle_min_lr");
  s.cycle_max_lr = number(params + "cycle_max_lr");
  s.decay_lr_rate = number(params + "decay_lr_rate");
  s.cycle_first_step_size = integer(params + "cycle_first_step_size");
  s.cycle_second_step_size = integer(params + "cycle_second_step_size");
  s.decay_step_size = integer(params + "decay_step_size");
  s.cycle_momentum = boolean(params + "cycle_momentum");
  s.cycle_min_mom = number(params + "cycle_min_mom");
  s.cycle_max_mom = number(params + "cycle_max_mom");
  s.decay_mom_rate = number(params + "decay_mom_rate");
}

void DeepSpeedBuilder::build_range_test() {
  ScheduleConfig& s = out_.strategy.schedule;
  const std::string params = "scheduler.params.lr_range_test_";
  s.lr_range_test_min_lr = number(params + "min_lr");
  s.lr_range_test_step_size = integer(params + "step_size");
  s.lr_range_test_step_rate = number(params + "step_rate");
  s.lr_range_test_staircase = boolean(params + "staircase");
}

}  // namespace zl
