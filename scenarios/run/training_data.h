// The tokens that a scenario trains on, and those that a trained model is judged by.
// Ownership: values. Threads: open_data() is called on one; ranks validate at once.
#pragma once

#include <string>

#include "core/data/token_source.h"
#include "core/train/engine.h"
#include "scenarios/files/scenario.h"

namespace zl {

// `data` as run.data has it: "synthetic", "bible", a text or a .bin; cut by the scenario's
// tokenizer for its model. Throws Error{invalid} naming a file that is none, is too short for one
// sequence, or has ids beyond the vocabulary.
TokenSource open_data(const Scenario& scenario, const std::string& data);

inline constexpr std::int64_t kValidationBatches = 8;

// The mean loss of kValidationBatches micro-batches of every rank: the same ones at every call.
// Every rank calls it, after its last step.
double validation_loss(Engine& engine, const DataSource& data, std::int64_t sequence_length);

}  // namespace zl
