// The table of torchtitan's TOML keys (releases 0.1 and 0.2) and what becomes of each.
// Ownership: static data. Threads: immutable.
#pragma once

#include <span>

#include "scenarios/launch/foreign_keys.h"

namespace zl {

std::span<const ForeignGroup> torchtitan_groups();

}  // namespace zl
