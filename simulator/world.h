// The simulated world: the program runs once, as rank 0, and stands for all ranks. Data-parallel
// ranks hold padded shards of one size, so they form one class. Rank 0 has the most to do: a rank
// whose chunk of a parameter is all padding leaves out the ops over that chunk.
// Ownership: the world owns its device and communicator. Threads: run() calls the program on the
// caller's thread.
#pragma once

#include <memory>

#include "core/device/world.h"
#include "simulator/device.h"

namespace zl::sim {

struct SimOptions {
  Answers answers;
  DeviceProperties device{.name = "sim"};  // memory > 0 limits the device space
};

// Throws Error{invalid} when options.ranks < 1.
std::unique_ptr<World> make_world(const WorldOptions& options, const SimOptions& sim);

}  // namespace zl::sim
