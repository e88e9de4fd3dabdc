#include "scenarios/deepspeed/schedule.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

const std::string kParams = "scheduler.params.";

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
    ScheduleType{"ExponentialLR", ScheduleKind::exponential, "gamma"},
};

// What DeepSpeed takes from torch.optim.lr_scheduler where it has none of that name, besides
// ExponentialLR.
constexpr std::array kTorchTypes = {"CosineAnnealingLR",
                                    "CosineAnnealingWarmRestarts",
                                    "CyclicLR",
                                    "ConstantLR",
                                    "LambdaLR",
                                    "LinearLR",
                                    "MultiStepLR",
                                    "OneCycleLR",
                                    "PolynomialLR",
                                    "ReduceLROnPlateau",
                                    "StepLR"};

void build_unknown(Keys& keys, const std::string& name) {
  std::vector<std::string> known;
  for (const ScheduleType& t : kTypes) known.emplace_back(t.name);
  if (std::find(kTorchTypes.begin(), kTorchTypes.end(), name) != kTorchTypes.end()) {
    keys.effects().refuse("scheduler.type", "one of PyTorch's; available are " + join(known, ", "));
  } else {
    const std::string near = name.starts_with("Cosine") ? "WarmupCosineLR" : nearest(name, known);
    keys.effects().reject("scheduler.type", "\"" + shortened(name) + "\" is not one of " +
                                                join(known, ", ") + "; the nearest is \"" + near +
                                                "\"");
  }
  keys.effects().mark_unused(kParams, "a parameter of " + shortened(name));
}

void build_warmup(Keys& keys, const ImportContext& context, const std::string& type, double lr,
                  ScheduleConfig& s) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(context.steps, 1));
  const bool is_open = context.steps == 0;
  const AutoRule warmup{is_open ? 1000 : std::clamp(steps / 10, 1.0, 1000.0),
                        "a tenth of run.steps, at most 1000", is_open};
  s.warmup_num_steps = keys.integer(kParams + "warmup_num_steps", &warmup);
  const std::string shape = keys.text(kParams + "warmup_type");
  s.warmup_log = shape == "log" || shape == "LOG" || shape == "Log";
  if (s.kind == ScheduleKind::warmup_cosine_lr) {
    fields::visit_warmup_ratios(s, reading(keys, kParams));
  } else {
    s.warmup_min_lr = keys.number(kParams + "warmup_min_lr");
    const AutoRule rate{lr, "the optimizer's learning rate"};
    s.warmup_max_lr = keys.number(kParams + "warmup_max_lr", &rate);
    const GivenKey* maximum = keys.given(kParams + "warmup_max_lr");
    if (maximum != nullptr && maximum->value->is_null()) {
      s.warmup_max_lr = rate.value;
      keys.effects().record(maximum->path, rate.value, EffectStatus::honoured, "null: " + rate.why);
    }
    if (s.warmup_min_lr > s.warmup_max_lr) {
      keys.effects().reject(kParams + "warmup_min_lr",
                            "above scheduler.params.warmup_max_lr; exchange the two");
    }
  }
  if (s.kind == ScheduleKind::warmup_lr) return;
  const std::string total = kParams + "total_num_steps";
  if (keys.given(total) == nullptr) {
    keys.effects().reject(total, "missing, but " + type + " needs it; give a number or \"auto\"");
    return;
  }
  const AutoRule rule{steps, "run.steps", is_open};
  s.total_num_steps = keys.integer(total, &rule);
}

// Whoever writes 0 or 1 gets two steps, and must know.
void note_short_warmup(Keys& keys, const Release& release, const ScheduleConfig& s) {
  const std::string path = kParams + "warmup_num_steps";
  if (!keys.is_set(path) || s.warmup_num_steps >= 2) return;
  const bool refused = s.warmup_num_steps == 0 && release >= kRefusesZeroWarmup;
  keys.effects().record(path, 2, EffectStatus::honoured,
                        std::string("DeepSpeed warms up for two steps at least") +
                            (refused ? ", and refuses 0 since 0.19.3" : ""));
}

void build_stairs(Keys& keys, const Release& release, ScheduleConfig& s) {
  const std::string first = kParams + "cycle_first_stair_count";
  const std::string second = kParams + "cycle_second_stair_count";
  if (release < kTakesStairs) {
    keys.effects().mark_unused(first, "no effect: DeepSpeed uses it since 0.19.4");
    keys.effects().mark_unused(second, "no effect: DeepSpeed uses it since 0.19.4");
    return;
  }
  s.cycle_first_stair_count = keys.integer(first);
  s.cycle_second_stair_count = keys.integer(second);
  if (!keys.is_set(second)) s.cycle_second_stair_count = s.cycle_first_stair_count;
}

void build_exponential(Keys& keys, ScheduleConfig& s) {
  if (!keys.is_set(kParams + "gamma")) {
    keys.effects().reject(kParams + "gamma", "missing, but ExponentialLR needs it; give a number");
    return;
  }
  s.gamma = keys.number(kParams + "gamma");
}

void build_one_cycle(Keys& keys, const Release& release, ScheduleConfig& s) {
  for (const char* name : {"cycle_min_lr", "cycle_max_lr"}) {
    if (!keys.is_set(kParams + name))
      keys.effects().reject(kParams + name, "missing, but OneCycle needs it; give a number");
  }
  if (!keys.is_set(kParams + "cycle_min_lr") || !keys.is_set(kParams + "cycle_max_lr")) return;
  fields::visit_one_cycle(s, reading(keys, kParams));
  build_stairs(keys, release, s);
}

}  // namespace

ScheduleConfig build_schedule(Keys& keys, const ImportContext& context, const Release& release,
                              double lr) {
  ScheduleConfig s;
  if (!keys.is_set("scheduler.type")) {
    keys.effects().record("scheduler.type", "constant", EffectStatus::defaulted,
                          "default: constant learning rate");
    for (const GivenKey& key : keys.effects().keys()) {
      if (key.rejection.empty() && key.path.starts_with(kParams)) {
        keys.effects().reject(key.path, "given without scheduler.type");
      }
    }
    return s;
  }
  const std::string name = keys.text("scheduler.type");
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&name](const ScheduleType& t) { return t.name == name; });
  if (type == kTypes.end()) {
    build_unknown(keys, name);
    return s;
  }
  reject_others(keys, kParams, type->params, name);
  s.kind = type->kind;
  if (type->kind == ScheduleKind::one_cycle) {
    build_one_cycle(keys, release, s);
  } else if (type->kind == ScheduleKind::lr_range_test) {
    fields::visit_range_test(s, reading(keys, kParams));
  } else if (type->kind == ScheduleKind::exponential) {
    build_exponential(keys, s);
  } else {
    build_warmup(keys, context, name, lr, s);
    note_short_warmup(keys, release, s);
  }
  return s;
}

}  // namespace zl
