// A run on a device that computes: its world, its data, and what is kept of it.
// Ownership: refers to its arguments for the time of the call. Threads: blocks; several may be
// under way at once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/device/world.h"
#include "core/train/run_result.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/run_hooks.h"

namespace zl {

// Throws Error{invalid} for settings that the backend does not take, naming the setting and the
// fix, and Error{unavailable} for a backend that cannot be used here.
std::unique_ptr<World> make_real_world(const BackendRegistry& registry, const Scenario& scenario,
                                       const std::string& backend, const RunHooks& hooks);

// What a strategy comes to on the device that is here.
using Resolve = std::function<Strategy()>;

// Ranks that are processes first agree on what they run; what keeps one of them from running ends
// all. Throws Error for ranks that differ, invalid data and failures of the machine, OutOfMemory.
RunResult run_real(World& world, const Scenario& scenario, const Resolve& resolve,
                   const BackendCapabilities& backend, const RunHooks& hooks);

}  // namespace zl
