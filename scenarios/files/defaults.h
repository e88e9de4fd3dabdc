// What a scenario has where its file is silent.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

#include "scenarios/files/scenario.h"

namespace zl {

// "1024xh100" 1024; 0 of a name without a count, and of a file.
std::int64_t devices_in_name(const std::string& cluster);
std::int64_t devices_in_name(const Scenario& scenario);

// The devices a cluster name promises: "1024xh100" 1024, "h200" 1, "local" 4 threads. Throws
// Error{invalid} where the cluster has no name of the catalogue.
std::int64_t default_ranks(const Scenario& scenario);

// The model's longest; its sliding window where that is longer than most training.
std::int64_t default_sequence_length(const ModelConfig& model);

// Newer models take more tokens than people train on at once: who says no length should know.
inline constexpr std::int64_t kUsualSequenceLength = 8192;
bool is_long_by_default(const ModelConfig& model);
std::string long_default_text(const ModelConfig& model);

}  // namespace zl
