#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "scenarios/deepspeed/builder.h"

namespace zl {
namespace {

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

bool takes(std::string_view params, std::string_view name) {
  return (" " + std::string(params) + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

}  // namespace

void DeepSpeedBuilder::build_optimizer() {
  const bool missing = !is_set("optimizer.type");
  const std::string given_type = text("optimizer.type");
  const std::string name = lower(given_type);
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&name](const OptimizerType& t) { return t.name == name; });
  if (type == kTypes.end()) {
    std::vector<std::string> spellings;
    for (const OptimizerType& t : kTypes) spellings.emplace_back(t.spelling);
    reject("optimizer.type", "\"" + given_type + "\" is not a known optimizer; the nearest is \"" +
                                 nearest(given_type, spellings) + "\"");
    return;
  }
  if (!type->implemented) {
    refuse("optimizer.type",
           "available are AdamW, Adam, Lamb, SGD, OneBitAdam, ZeroOneAdam, OneBitLamb");
    mark_unused("optimizer.params.", "a parameter of " + std::string(type->spelling));
    return;
  }
  if (missing) {
    record("optimizer.type", "AdamW", EffectStatus::defaulted,
           "the file names no optimizer: AdamW, decoupled weight decay");
  }
  const std::string section = "optimizer.params.";
  for (const GivenKey& key : keys_) {
    if (!key.rejection.empty() || !key.path.starts_with(section)) continue;
    if (!takes(type->params, std::string_view(key.path).substr(section.size()))) {
      reject(key.path, "not a parameter of " + std::string(type->spelling) + "; it takes " +
                           std::string(type->params));
    }
  }
  out_.strategy.optimizer.kind = type->kind;
  build_optimizer_params(name);
}

void DeepSpeedBuilder::build_optimizer_params(const std::string& type) {
  OptimizerConfig& o = out_.strategy.optimizer;
  const std::string params = "optimizer.params.";
  o.lr = number(params + "lr");
  o.weight_decay = number(params + "weight_decay");
  if (o.kind == OptimizerKind::sgd) {
    o.momentum = number(params + "momentum");
    o.nesterov = boolean(params + "nesterov");
    if (o.nesterov && o.momentum == 0) {
      reject(params + "nesterov", "true needs optimizer.params.momentum above 0");
    }
    return;
  }
  read_betas();
  o.epsilon = number(params + "eps");
  o.bias_correction = boolean(params + "bias_correction");
  if (o.kind == OptimizerKind::lamb || o.kind == OptimizerKind::onebit_lamb) {
    o.lamb_max_trust = number(params + "max_coeff");
    o.lamb_min_trust = number(params + "min_coeff");
    if (o.lamb_min_trust > o.lamb_max_trust) {
      reject(params + "min_coeff", "above optimizer.params.max_coeff; exchange the two");
    }
    if (o.kind == OptimizerKind::lamb) return;
  }
  if (is_onebit(o.kind)) return build_onebit();
  const bool decoupled = boolean(params + "adam_w_mode");
  if (type == "adam") {
    if (!decoupled) o.kind = OptimizerKind::adam;
    record("optimizer.type", decoupled ? "AdamW" : "Adam", EffectStatus::honoured,
           decoupled ? "DeepSpeed's Adam decouples weight decay unless adam_w_mode is false"
                     : "adam_w_mode is false: weight decay is added to the gradient");
  } else if (!decoupled) {
    reject(params + "adam_w_mode", "false contradicts type AdamW; write type Adam");
  }
}

void DeepSpeedBuilder::build_onebit() {
  OptimizerConfig& o = out_.strategy.optimizer;
  OnebitConfig& onebit = o.onebit;
  const std::string params = "optimizer.params.";
  if (o.kind == OptimizerKind::zero_one_adam) {
    const auto steps = static_cast<double>(context_.steps);
    const AutoRule freeze{std::max(1.0, std::floor(0.15 * steps)), "15 % of run.steps"};
    const AutoRule scaler{std::max(1.0, std::floor(steps / 8)), "an eighth of run.steps"};
    const bool known = context_.steps > 0;
    onebit.var_freeze_step = integer(params + "var_freeze_step", known ? &freeze : nullptr);
    onebit.var_update_scaler = integer(params + "var_update_scaler");
    onebit.local_step_scaler = integer(params + "local_step_scaler", known ? &scaler : nullptr);
    onebit.local_step_clipper = integer(params + "local_step_clipper");
  } else {
    build_freeze();
  }
  if (o.kind == OptimizerKind::onebit_lamb) {
    onebit.coeff_beta = number(params + "coeff_beta");
    onebit.factor_max = number(params + "factor_max");
    onebit.factor_min = number(params + "factor_min");
    onebit.factor_threshold = number(params + "factor_threshold");
    if (onebit.factor_min > onebit.factor_max) {
      reject(params + "factor_min", "above optimizer.params.factor_max; exchange the two");
    }
  }
  if (o.kind != OptimizerKind::onebit_adam) {
    o.bias_correction = false;
    record(params + "bias_correction", false, EffectStatus::honoured,
           "no effect: 0/1 Adam and 1-bit LAMB correct no bias, nor do DeepSpeed's");
  } else {
    onebit.automatic_freeze = boolean("x-zerolab.automatic_freeze");
    onebit.variance_stability = number("x-zerolab.variance_stability");
    onebit.deepspeed_compat = boolean("x-zerolab.deepspeed_compat");
    if (onebit.deepspeed_compat) {
      o.bias_correction = false;
      record(params + "bias_correction", false, EffectStatus::honoured,
             "x-zerolab.deepspeed_compat: DeepSpeed corrects no bias");
    }
  }
  check_onebit();
}

// How many warm-up steps; a run that ends before it would compress nothing, and say so nowhere.
void DeepSpeedBuilder::build_freeze() {
  const std::string path = "optimizer.params.freeze_step";
  const AutoRule rule{std::max(1.0, std::floor(0.15 * static_cast<double>(context_.steps))),
                      "15 % of run.steps"};
  const std::int64_t step = integer(path, context_.steps > 0 ? &rule : nullptr);
  out_.strategy.optimizer.onebit.freeze_step = step;
  if (context_.steps == 0 || step < context_.steps) return;
  reject(path,
         std::to_string(step) + " is not below run.steps " + std::to_string(context_.steps) +
             ": nothing would ever be compressed; lower it, raise --steps, or write \"auto\"");
}

void DeepSpeedBuilder::check_onebit() {
  const std::string conflict = stage_conflict(out_.strategy);
  if (!conflict.empty()) reject("zero_optimization.stage", conflict);
  if (out_.strategy.zero.sum_gradients) {
    reject("gradient_allreduce_op",
           "\"sum\" does not go with compressed momenta, which are "
           "averaged; write \"mean\"");
  }
}

void DeepSpeedBuilder::read_betas() {
  const std::string path = "optimizer.params.betas";
  const Json betas = value_of(path);
  const auto is_beta = [](const Json& beta) {
    return beta.is_number() && beta.get<double>() >= 0 && beta.get<double>() < 1;
  };
  if (betas.size() != 2 || !is_beta(betas[0]) || !is_beta(betas[1])) {
    reject(path, betas.dump() + " is not a list of two numbers in [0, 1)");
    return;
  }
  out_.strategy.optimizer.beta1 = betas[0].get<double>();
  out_.strategy.optimizer.beta2 = betas[1].get<double>();
}

}  // namespace zl
