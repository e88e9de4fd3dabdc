// The table of Megatron-LM's arguments (megatron-core 0.16) and what becomes of each.
// Ownership: static data. Threads: immutable.
#pragma once

#include <span>
#include <string_view>

#include "scenarios/launch/foreign_keys.h"

namespace zl {

std::span<const ForeignGroup> megatron_groups();
// Whether a value of the argument becomes part of the strategy.
bool megatron_makes_strategy_of(std::string_view key);

}  // namespace zl
