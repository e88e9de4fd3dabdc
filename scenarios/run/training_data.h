// What a scenario trains on, and what its model is judged by.
// Ownership: values that share what they read. Threads: both are opened on one; ranks judge at
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/data/text_sources.h"
#include "core/data/token_source.h"
#include "core/train/engine.h"
#include "scenarios/files/scenario.h"
#include "scenarios/run/label_scores.h"

namespace zl {

struct TrainingData {
  std::shared_ptr<const DataSource> source;
  std::string fingerprint;
  std::int64_t tokens = 0;  // 0: without end
  std::int64_t texts = 0;   // of an encoder; 0: none, samples are drawn from the tokens
  // Of an encoder's texts, and of one with labels.
  std::shared_ptr<const TextSource> ordered = {};
  std::shared_ptr<const LabelSource> labelled = {};
  std::shared_ptr<const TextLines> lines = {};
};

// What run.data names: "synthetic", "bible", a text or a .bin; for an encoder also a .jsonl
// (text_lines.h). Cut by the scenario's tokenizer for its model. Throws Error{invalid} naming a
// file that is none, is too short for one sequence, has ids beyond the vocabulary, or is not what
// the model's task takes.
TrainingData open_data(const Scenario& scenario);

// What nothing is learned from, in the form that the model takes.
std::unique_ptr<const DataSource> synthetic_data(const ModelConfig& model, std::uint64_t seed);

// The same for programs that are recorded and never read an id: nothing is drawn for a decoder.
std::unique_ptr<const DataSource> data_to_record(const ModelConfig& model, std::uint64_t seed);

struct EvaluationData {
  std::shared_ptr<const EvaluationSource> source;  // null: the scenario has none
  std::string fingerprint;
  std::int64_t text_bytes = 0;  // of which all but the first token counts; 0: a .bin, or a part
  TrainingData texts = {};      // of an encoder
};

// What judges the models of a scenario: run.eval_samples sequences of run.eval_data, or all; of the
// Bible's testaments, which are trained on, the verses that are held out of them. `trained`: the
// data that is trained on, whose labels these texts have too. Throws as open_data().
EvaluationData open_evaluation(const Scenario& scenario, const TrainingData* trained = nullptr);

// How well all texts of `test` are told after training on `train`. Every rank calls it, between
// steps.
LabelScores judge_labels(Engine& engine, const TrainingData& train, const TrainingData& test,
                         std::int64_t sequence_length);

}  // namespace zl
