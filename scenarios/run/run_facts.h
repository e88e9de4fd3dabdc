// What decides the bits of a run, as facts that its ranks must agree on.
// Ownership: values. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "core/rank/agreement.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/run_hooks.h"

namespace zl {

// Of what is read, which names alone do not tell apart.
struct Fingerprints {
  std::string data, evaluation = {};  // evaluation: empty where nothing judges
  std::string weights = {};           // empty where they are drawn
};

// Of this process. strategy: what one of the scenario's came to here.
std::vector<Fact> run_facts(const Scenario& scenario, const Strategy& strategy,
                            const Fingerprints& read, const RunHooks& hooks);

}  // namespace zl
