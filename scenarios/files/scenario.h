// A scenario: one model on one cluster under several strategies, everything resolved to numbers.
// Ownership: a value. Threads: immutable after loading.
//
// A scenario file is JSON (comments allowed) with "schema": 1 and the keys model, cluster,
// strategies, run; model, cluster and each strategy are a catalogue name, a path, or an inline
// object. Paths are relative to the scenario file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_config.h"
#include "scenarios/deepspeed/import.h"
#include "scenarios/files/run_settings.h"

namespace zl {

struct Scenario {
  std::string name;
  ModelConfig model;
  std::string cluster;       // name
  std::string cluster_json;  // text of an inline cluster or cluster file; empty: see `cluster`
  std::vector<ImportedStrategy> strategies;
  RunSettings run;
};

// Real backends start one thread per rank: throws Error{invalid} outside 1..64.
void check_real_ranks(const Scenario& scenario, std::string_view backend);

// The scenario with every value spelled out, keys in a fixed order, without its name.
Json scenario_to_json(const Scenario& scenario);

// The same with the name, as text; loading it again gives the same text. `indent` < 0: one line.
std::string canonical_json(const Scenario& scenario, int indent = -1);

// 16 hexadecimal digits: FNV-1a (64 bits) of the canonical JSON without the name.
std::string content_hash(const Scenario& scenario);

// The scenario with this strategy alone: what a stored run is a run of, whatever ran beside it.
Scenario with_one_strategy(const Scenario& scenario, const ImportedStrategy& strategy);

// Of all ranks.
std::int64_t tokens_per_step(const Scenario& scenario, const Strategy& strategy);

}  // namespace zl
