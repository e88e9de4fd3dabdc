// A model that is to go on with prompts, and its tokenizer.
// Ownership: values. Threads: any, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/tokenizer.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/checkpoint_model.h"

namespace zl {

struct Speaker {
  Scenario scenario;  // of one rank
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<CheckpointedRun> checkpoint;  // where the model is that of one
  SparseAttentionConfig sparse;               // what it was trained with

  DType dtype() const { return scenario.strategies.front().strategy.precision.compute_dtype; }
};

// The model that the overrides name, on one rank: a name, a folder, or the checkpoints of a run,
// which have no tokenizer. Throws as load_scenario(), load_tokenizer() and read_checkpointed_run().
Speaker load_speaker(ScenarioOverrides overrides);

// Its weights; null: they are to be drawn. Throws as ModelWeights or checkpointed_weights().
std::shared_ptr<const WeightSource> open_weights(const Speaker& speaker);

// The tokens of a prompt, with those that the tokenizer puts around it. Throws Error{invalid} for
// one that is empty or has tokens beyond the model's vocabulary.
std::vector<std::int32_t> encode_prompt(const Speaker& speaker, const std::string& prompt);

// The tokens that end an output: those of generation_config.json, else the tokenizer's.
std::vector<std::int32_t> ends_of(const Speaker& speaker);

}  // namespace zl
