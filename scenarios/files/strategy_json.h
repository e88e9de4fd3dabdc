// The canonical DeepSpeed form of a Strategy.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "core/train/strategy.h"
#include "simulator/json/reading.h"

namespace zl {

// A DeepSpeed configuration with every value spelled out and keys in a fixed order; importing it
// for the same number of ranks gives the same Strategy.
Json strategy_to_json(const Strategy& strategy);

// "none", "full", "every:4", "selective:attention,mlp", "auto".
std::string recompute_text(const RecomputeConfig& recompute);

}  // namespace zl
