// What decides the bits of a run, as facts that its ranks must agree on.
// Ownership: values. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "core/rank/agreement.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/run_hooks.h"

namespace zl {

// Of this process. strategy: what one of the scenario's came to here. data: its fingerprint.
std::vector<Fact> run_facts(const Scenario& scenario, const Strategy& strategy,
                            const std::string& data, const RunHooks& hooks);

}  // namespace zl
