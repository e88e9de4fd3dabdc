// The data of `zerolab show`: every derived number of a model or a strategy, as JSON.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

#include "scenarios/deepspeed/import.h"
#include "simulator/json/reading.h"

namespace zl {

// The model's keys plus parameters, embedding_parameters, flops_per_token at `sequence_length` (0:
// max_sequence) with its convention, parameters per unit, and bytes of weights and model states.
Json show_model(const ModelConfig& model, std::int64_t sequence_length = 0);

// {"name", "effects": [{key, given, effective, status, why}], "derived", "deepspeed", "warnings",
// "refusals", "rejections"}; absent values are null.
Json show_strategy(const ImportedStrategy& imported, std::int64_t ranks = 1);

}  // namespace zl
