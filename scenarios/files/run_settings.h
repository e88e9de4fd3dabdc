// The "run" section of a scenario as JSON, with its checks.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/files/json_reading.h"
#include "scenarios/files/scenario.h"

namespace zl {

// Throws Error{invalid} naming the key: unknown keys, 0 ranks, fewer than 1 step, wrong types.
RunSettings read_run_settings(const Json& object);

// Throws Error{invalid} when the sequence exceeds learned positions or a sliding window.
void check_sequence_length(const RunSettings& run, const ModelConfig& model);

// What is not already part of the resolved strategies, in a fixed order.
Json run_settings_to_json(const RunSettings& run);

}  // namespace zl
