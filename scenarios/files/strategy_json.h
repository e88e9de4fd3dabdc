// The canonical DeepSpeed form of a Strategy.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/deepspeed/imported_strategy.h"
#include "simulator/json/reading.h"

namespace zl {

// A DeepSpeed configuration with every value spelled out and keys in a fixed order; importing it
// for the same number of ranks gives the same Strategy.
Json strategy_to_json(const Strategy& strategy);

// The file that was imported as zerolab writes it: every value spelled out but those that wait for
// the run. "auto" stays, and types and, unless `with_batch`, batch sizes are there only where the
// file has them.
Json strategy_file_json(const ImportedStrategy& imported, bool with_batch);

// "none", "full", "every:4", "selective:attention,mlp", "selective:products", "auto".
std::string recompute_text(const RecomputeConfig& recompute);
// The same where it is decided: of automatic recomputation "auto, blocks:2,1".
std::string decided_recompute_text(RecomputeConfig recompute);

}  // namespace zl
