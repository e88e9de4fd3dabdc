#include "scenarios/deepspeed/optimizer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/deepspeed/fields.h"

namespace zl {
namespace {

const std::string kParams = "optimizer.params.";

struct OptimizerType {
  std::string_view name;  // lower case, as DeepSpeed compares
  std::string_view spelling;
  bool implemented;
  OptimizerKind kind;
  std::string_view params;  // separated by spaces; empty: any parameter of the key table
};

constexpr std::string_view kAdamParams =
    "lr betas eps weight_decay bias_correction amsgrad torch_adam adam_w_mode fused foreach "
    "maximize use_triton";
constexpr std::string_view kLambParams =
    "lr betas eps weight_decay bias_correction max_coeff min_coeff amsgrad eps_inside_sqrt";
constexpr std::string_view kSgdParams =
    "lr momentum weight_decay nesterov dampening maximize foreach fused";

constexpr std::string_view kOnebitAdamParams =
    "lr betas eps weight_decay bias_correction amsgrad eps_inside_sqrt freeze_step cuda_aware "
    "comm_backend_name";
constexpr std::string_view kZeroOneAdamParams =
    "lr betas eps weight_decay bias_correction amsgrad eps_inside_sqrt var_freeze_step "
    "var_update_scaler local_step_scaler local_step_clipper cuda_aware comm_backend_name";

constexpr std::string_view kOnebitLambParams =
    "lr betas eps weight_decay bias_correction max_coeff min_coeff amsgrad eps_inside_sqrt "
    "freeze_step coeff_beta factor_max factor_min factor_threshold cuda_aware comm_backend_name";

constexpr auto kNone = OptimizerKind::adamw;
constexpr std::array kTypes = {
    OptimizerType{"adamw", "AdamW", true, OptimizerKind::adamw, kAdamParams},
    OptimizerType{"adam", "Adam", true, OptimizerKind::adamw, kAdamParams},
    OptimizerType{"lamb", "Lamb", true, OptimizerKind::lamb, kLambParams},
    OptimizerType{"sgd", "SGD", true, OptimizerKind::sgd, kSgdParams},
    OptimizerType{"adagrad", "Adagrad", false, kNone, ""},
    OptimizerType{"onebitadam", "OneBitAdam", true, OptimizerKind::onebit_adam, kOnebitAdamParams},
    OptimizerType{"zerooneadam", "ZeroOneAdam", true, OptimizerKind::zero_one_adam,
                  kZeroOneAdamParams},
    OptimizerType{"onebitlamb", "OneBitLamb", true, OptimizerKind::onebit_lamb, kOnebitLambParams},
    OptimizerType{"muadam", "MuAdam", false, kNone, ""},
    OptimizerType{"muadamw", "MuAdamW", false, kNone, ""},
    OptimizerType{"musgd", "MuSGD", false, kNone, ""},
    OptimizerType{"lion", "Lion", false, kNone, ""},
    OptimizerType{"muon", "Muon", false, kNone, ""},
    OptimizerType{"rmsprop", "RMSprop", false, kNone, ""},
    OptimizerType{"adadelta", "Adadelta", false, kNone, ""},
    OptimizerType{"adafactor", "Adafactor", false, kNone, ""},
    OptimizerType{"adamax", "Adamax", false, kNone, ""},
    OptimizerType{"nadam", "NAdam", false, kNone, ""},
    OptimizerType{"radam", "RAdam", false, kNone, ""},
    OptimizerType{"asgd", "ASGD", false, kNone, ""},
    OptimizerType{"rprop", "Rprop", false, kNone, ""},
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void read_betas(Keys& keys, OptimizerConfig& o) {
  const std::string path = kParams + "betas";
  const Json betas = keys.value(path);
  const auto is_beta = [](const Json& beta) {
    return beta.is_number() && beta.get<double>() >= 0 && beta.get<double>() < 1;
  };
  if (betas.size() != 2 || !is_beta(betas[0]) || !is_beta(betas[1])) {
    keys.effects().reject(path, shown(betas) + " is not a list of two numbers in [0, 1)");
    return;
  }
  o.beta1 = betas[0].get<double>();
  o.beta2 = betas[1].get<double>();
}

// How many warm-up steps; a run that ends before it would compress nothing, and say so nowhere.
std::int64_t read_freeze_step(Keys& keys, const ImportContext& context) {
  const std::string path = kParams + "freeze_step";
  const AutoRule rule{std::max(1.0, std::floor(0.15 * static_cast<double>(context.steps))),
                      "15 % of run.steps"};
  const std::int64_t step = keys.integer(path, context.steps > 0 ? &rule : nullptr);
  if (context.steps == 0 || step < context.steps) return step;
  keys.effects().reject(
      path, std::to_string(step) + " is not below run.steps " + std::to_string(context.steps) +
                ": nothing would ever be compressed; lower it, raise --steps, or write \"auto\"");
  return step;
}

void build_onebit(Keys& keys, const ImportContext& context, OptimizerConfig& o) {
  OnebitConfig& onebit = o.onebit;
  if (o.kind == OptimizerKind::zero_one_adam) {
    const auto steps = static_cast<double>(context.steps);
    const AutoRule freeze{std::max(1.0, std::floor(0.15 * steps)), "15 % of run.steps"};
    const AutoRule scaler{std::max(1.0, std::floor(steps / 8)), "an eighth of run.steps"};
    fields::visit_zero_one_adam(onebit, [&](const std::string& name, std::int64_t& member) {
      const AutoRule* rule = name == "var_freeze_step"     ? &freeze
                             : name == "local_step_scaler" ? &scaler
                                                           : nullptr;
      member = keys.integer(kParams + name, context.steps > 0 ? rule : nullptr);
    });
  } else {
    onebit.freeze_step = read_freeze_step(keys, context);
  }
  if (o.kind == OptimizerKind::onebit_lamb) {
    fields::visit_onebit_lamb(onebit, reading(keys, kParams));
    if (onebit.factor_min > onebit.factor_max) {
      keys.effects().reject(kParams + "factor_min",
                            "above optimizer.params.factor_max; exchange the two");
    }
  }
  if (o.kind != OptimizerKind::onebit_adam) {
    o.bias_correction = false;
    keys.effects().record(kParams + "bias_correction", false, EffectStatus::honoured,
                          "no effect: 0/1 Adam and 1-bit LAMB correct no bias, nor do DeepSpeed's");
  } else {
    fields::visit_automatic_freeze(onebit, reading(keys, "x-zerolab."));
    onebit.deepspeed_compat = keys.boolean("x-zerolab.deepspeed_compat");
    if (onebit.deepspeed_compat) {
      o.bias_correction = false;
      keys.effects().record(kParams + "bias_correction", false, EffectStatus::honoured,
                            "x-zerolab.deepspeed_compat: DeepSpeed corrects no bias");
    }
  }
}

void build_params(Keys& keys, const ImportContext& context, const std::string& type,
                  OptimizerConfig& o) {
  fields::visit_every_optimizer(o, reading(keys, kParams));
  if (o.kind == OptimizerKind::sgd) {
    fields::visit_sgd(o, reading(keys, kParams));
    if (o.nesterov && o.momentum == 0) {
      keys.effects().reject(kParams + "nesterov", "true needs optimizer.params.momentum above 0");
    }
    return;
  }
  read_betas(keys, o);
  fields::visit_adam(o, reading(keys, kParams));
  if (o.kind == OptimizerKind::lamb || o.kind == OptimizerKind::onebit_lamb) {
    fields::visit_lamb(o, reading(keys, kParams));
    if (o.lamb_min_trust > o.lamb_max_trust) {
      keys.effects().reject(kParams + "min_coeff",
                            "above optimizer.params.max_coeff; exchange the two");
    }
    if (o.kind == OptimizerKind::lamb) return;
  }
  if (is_onebit(o.kind)) return build_onebit(keys, context, o);
  const bool decoupled = keys.boolean(kParams + "adam_w_mode");
  if (type == "adam") {
    if (!decoupled) o.kind = OptimizerKind::adam;
    keys.effects().record(
        "optimizer.type", decoupled ? "AdamW" : "Adam", EffectStatus::honoured,
        decoupled ? "DeepSpeed's Adam decouples weight decay unless adam_w_mode is false"
                  : "adam_w_mode is false: weight decay is added to the gradient");
  } else if (!decoupled) {
    keys.effects().reject(kParams + "adam_w_mode", "false contradicts type AdamW; write type Adam");
  }
}

}  // namespace

OptimizerConfig build_optimizer(Keys& keys, const ImportContext& context, const Release& release) {
  OptimizerConfig o;
  const bool missing = !keys.is_set("optimizer.type");
  const std::string given_type = keys.text("optimizer.type");
  const std::string name = lower(given_type);
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&name](const OptimizerType& t) { return t.name == name; });
  if (type == kTypes.end()) {
    std::vector<std::string> spellings;
    for (const OptimizerType& t : kTypes) spellings.emplace_back(t.spelling);
    keys.effects().reject("optimizer.type", "\"" + shortened(given_type) +
                                                "\" is not a known optimizer; the nearest is \"" +
                                                nearest(given_type, spellings) + "\"");
    return o;
  }
  if (!type->implemented) {
    keys.effects().refuse(
        "optimizer.type",
        "available are AdamW, Adam, Lamb, SGD, OneBitAdam, ZeroOneAdam, OneBitLamb");
    keys.effects().mark_unused(kParams, "a parameter of " + std::string(type->spelling));
    return o;
  }
  if (missing) {
    keys.effects().record("optimizer.type", "AdamW", EffectStatus::defaulted,
                          "the file names no optimizer: AdamW, decoupled weight decay");
  }
  reject_others(keys, kParams, type->params, std::string(type->spelling));
  o.kind = type->kind;
  build_params(keys, context, name, o);
  if (is_onebit(o.kind) && release >= kWithoutOnebit) {
    keys.effects().record("optimizer.type", std::string(type->spelling), EffectStatus::honoured,
                          "by zerolab's own; DeepSpeed has none since 0.19.7");
  }
  return o;
}

void check_onebit(Keys& keys, const Strategy& strategy) {
  if (!is_onebit(strategy.optimizer.kind)) return;
  const std::string conflict = stage_conflict(strategy);
  if (!conflict.empty()) keys.effects().reject("zero_optimization.stage", conflict);
  if (strategy.zero.sum_gradients) {
    keys.effects().reject("gradient_allreduce_op",
                          "\"sum\" does not go with compressed momenta, which are "
                          "averaged; write \"mean\"");
  }
}

}  // namespace zl
