// Strategies by name or file, and the canonical DeepSpeed form of a Strategy.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/deepspeed/import.h"
#include "simulator/json/reading.h"

namespace zl {

// A catalogue name (aliases followed) or the path of a DeepSpeed file. Throws like import_deepspeed
// and, for an unknown name, with the nearest one.
ImportedStrategy load_strategy(const std::string& name_or_path, const ImportContext& context);

// The same for `show`: rejected keys are reported in the result.
ImportedStrategy inspect_strategy(const std::string& name_or_path, const ImportContext& context);

// A DeepSpeed configuration with every value spelled out and keys in a fixed order; importing it
// for the same number of ranks gives the same Strategy.
Json strategy_to_json(const Strategy& strategy);

// "none", "full", "every:4", "selective:attention,mlp", "auto".
std::string recompute_text(const RecomputeConfig& recompute);

}  // namespace zl
