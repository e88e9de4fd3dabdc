// The simulated world: the program runs as one rank of each class of ranks that run the same
// program, one after the other, and they stand for all ranks.
// Ownership: the world owns its devices and communicators. Threads: run() calls the program on the
// caller's thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/device/world.h"
#include "core/parallel/mesh.h"
#include "simulator/device.h"

namespace zl::sim {

struct SimOptions {
  Answers answers;
  DeviceProperties device{.name = "sim"};  // memory > 0 limits the device space
  std::optional<Mesh> mesh = {};           // none: all ranks are data parallel
  std::vector<int> recorded = {};          // the ranks that the program runs as; none: rank 0
};

// Throws Error{invalid} when options.ranks < 1 or the mesh has another number of ranks.
std::unique_ptr<World> make_world(const WorldOptions& options, const SimOptions& sim);

}  // namespace zl::sim
