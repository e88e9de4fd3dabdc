// The world of CPU ranks: threads of this process that exchange through shared memory.
// Ownership: the world owns devices and communicators. Threads: run() starts one thread per rank.
#pragma once

#include <memory>

#include "core/device/world.h"

namespace zl::cpu {

inline constexpr int kMaxRanks = 64;

// 1 to 64 ranks; Error{invalid} otherwise.
std::unique_ptr<World> make_world(const WorldOptions& options);

}  // namespace zl::cpu
