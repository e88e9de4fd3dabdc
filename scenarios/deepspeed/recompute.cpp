#include "scenarios/deepspeed/recompute.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace zl {
namespace {

// Returns false for a text outside the grammar of x-zerolab.recompute.
bool parse_recompute(const std::string& text, RecomputeConfig& out) {
  const auto rest_after = [&text](const std::string& prefix) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string();
  };
  if (text == "none") {
    out.mode = RecomputeMode::none;
  } else if (text == "full") {
    out.mode = RecomputeMode::full;
  } else if (text == "auto") {
    out.mode = RecomputeMode::automatic;
  } else if (const std::string every = rest_after("every:"); !every.empty()) {
    if (every.size() > 6 || every.find_first_not_of("0123456789") != std::string::npos)
      return false;
    out.mode = RecomputeMode::every_k;
    out.every = std::stoll(every);
    return out.every >= 1;
  } else if (const std::string parts = rest_after("selective:"); !parts.empty()) {
    out.mode = RecomputeMode::selective;
    out.attention = parts == "attention" || parts == "attention,mlp" || parts == "mlp,attention";
    out.activation = parts == "mlp" || parts == "attention,mlp" || parts == "mlp,attention";
    return out.attention || out.activation;
  } else {
    return false;
  }
  return true;
}

}  // namespace

RecomputeConfig build_recompute(Keys& keys) {
  RecomputeConfig recompute;
  const std::string path = "x-zerolab.recompute";
  const bool full = keys.boolean("gradient_checkpointing");
  if (full && !keys.is_set(path)) {
    recompute.mode = RecomputeMode::full;
    keys.effects().record(
        "gradient_checkpointing", true, EffectStatus::honoured,
        "full recomputation of every transformer block; DeepSpeed itself ignores this key");
    keys.effects().record(path, "full", EffectStatus::defaulted, "gradient_checkpointing is true");
    return recompute;
  }
  const std::string mode = keys.text(path);
  if (!parse_recompute(mode, recompute)) {
    keys.effects().reject(
        path, "\"" + shortened(mode) +
                  "\" is not one of none, full, every:K, selective:attention, selective:mlp, "
                  "selective:attention,mlp, auto");
  } else if (full && recompute.mode != RecomputeMode::full) {
    keys.effects().reject(path,
                          "\"" + mode + "\" contradicts gradient_checkpointing: true; remove one");
  }
  return recompute;
}

}  // namespace zl
