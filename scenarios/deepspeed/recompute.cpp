#include "scenarios/deepspeed/recompute.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/text.h"

namespace zl {
namespace {

// Of "every:K" and "blocks:N" the number; 0: it is none.
std::int64_t count_in(const std::string& text) {
  constexpr std::size_t kMostDigits = 6;
  const auto count = text.size() > kMostDigits ? std::nullopt : integer_in(text);
  return count && *count > 0 ? *count : 0;
}

// "blocks:N", of all stages, or "blocks:N,N..", of each; false: it is none, or all are 0.
bool parse_blocks(const std::string& text, RecomputeConfig& out) {
  out.mode = RecomputeMode::first_blocks;
  std::vector<std::int64_t> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string each = text.substr(begin, end - begin);
    counts.push_back(count_in(each));
    if (counts.back() == 0 && each != "0") return false;
    begin = end + 1;
  }
  if (counts.size() == 1) {
    out.blocks = counts.front();
  } else {
    out.stage_blocks = counts;
  }
  return std::ranges::any_of(counts, [](std::int64_t count) { return count > 0; });
}

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
    out.mode = RecomputeMode::every_k;
    out.every = count_in(every);
    return out.every > 0;
  } else if (const std::string blocks = rest_after("blocks:"); !blocks.empty()) {
    return parse_blocks(blocks, out);
  } else if (const std::string parts = rest_after("selective:"); !parts.empty()) {
    out.mode = RecomputeMode::selective;
    out.attention = parts == "attention" || parts == "attention,mlp" || parts == "mlp,attention";
    out.activation = parts == "mlp" || parts == "attention,mlp" || parts == "mlp,attention";
    out.products = parts == "products";
    return out.attention || out.activation || out.products;
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
                  "\" is not one of none, full, every:K, blocks:N, blocks:N,N.. (of each stage), "
                  "selective:attention, selective:mlp, selective:attention,mlp, "
                  "selective:products, auto");
  } else if (full && recompute.mode != RecomputeMode::full) {
    keys.effects().reject(path,
                          "\"" + mode + "\" contradicts gradient_checkpointing: true; remove one");
  }
  return recompute;
}

void check_recompute(Keys& keys, const Strategy& strategy) {
  const std::string conflict = recompute_conflict(strategy);
  if (conflict.empty()) return;
  keys.effects().reject("x-zerolab.recompute", conflict.substr(conflict.find(": ") + 2));
}

}  // namespace zl
