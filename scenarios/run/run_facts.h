// What decides the bits of a run, as facts that its ranks must agree on.
// Ownership: values. Threads: reads files; any.
#pragma once

#include <string>
#include <vector>

#include "core/data/token_source.h"
#include "core/rank/agreement.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/run_hooks.h"

namespace zl {

// Of this process. strategy: what one of the scenario's came to here. data: its fingerprint.
std::vector<Fact> run_facts(const Scenario& scenario, const Strategy& strategy,
                            const std::string& data, const RunHooks& hooks);

// The content of what is trained on, wherever it lies: "4404412 tokens, crc32c 1a2b3c4d". path:
// empty for tokens that come from no file.
std::string data_fingerprint(const TokenSource& source, const std::string& path);

}  // namespace zl
