// torchtitan: a plan as its configuration, TOML (releases 0.1 and 0.2) or Python (0.3 on), and TOML
// as a strategy.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/deepspeed/imported_strategy.h"
#include "scenarios/launch/foreign_keys.h"
#include "scenarios/launch/launch_file.h"
#include "scenarios/launch/obstacles.h"

namespace zl {

// A key of the configuration: "parallelism", "tensor_parallel_degree", 8.
struct TorchtitanSetting {
  std::string section, key;
  Json value;
};

// A plan as settings that every form of the configuration has; `is_python` adds what 0.3 has alone.
// What it does not have goes into `obstacles`.
std::vector<TorchtitanSetting> torchtitan_settings(const Strategy& strategy,
                                                   const LaunchFacts& facts, bool is_python,
                                                   Obstacles& obstacles);

// What reading the settings does not give back of the plan: see own_keys().
Json torchtitan_own_keys(const std::vector<TorchtitanSetting>& settings, const Strategy& strategy,
                         const LaunchFacts& facts, Obstacles& obstacles);

LaunchFile write_torchtitan(const Strategy& strategy, const LaunchFacts& facts);
// A module with one function, for `--module NAME --config plan`.
LaunchFile write_torchtitan_python(const Strategy& strategy, const LaunchFacts& facts);

// A TOML file. Without ranks of a context (infer_ranks) those that its degrees multiply to. Throws
// Error{invalid} "source:line: ..."; Error{unavailable} where this build has no TOML.
ImportedStrategy import_torchtitan(std::string_view text, std::string_view source,
                                   const ImportContext& context);
// Its keys, "parallelism.tensor_parallel_degree", and what its own comment adds (null: nothing).
ImportedStrategy import_torchtitan_keys(std::vector<ForeignKey> keys, const Json& own,
                                        std::string_view source, const ImportContext& context);

}  // namespace zl
