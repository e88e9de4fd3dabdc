// The tiny models of tests/golden/models/zoo, with what transformers 5.23 computes of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "backends/cpu/world.h"
#include "core/base/files.h"
#include "core/train/engine.h"
#include "scenarios/files/model_file.h"
#include "scenarios/weights/model_weights.h"

namespace zl::test {

inline std::string zoo(const std::string& name) {
  return std::string(ZL_SOURCE_DIR) + "/tests/golden/models/zoo/" + name;
}

inline nlohmann::json zoo_golden(const std::string& name) {
  return nlohmann::json::parse(read_file(zoo(name) + "/golden.json"));
}

// The decoders whose outputs transformers computed.
inline std::vector<std::string> zoo_decoders() {
  return {"gpt2",
          "gpt2_gelu_inner_untied",
          "llama_gqa",
          "llama_gqa_sharded",
          "llama_tied_bias",
          "llama3_rope",
          "llama_linear_rope",
          "llama_yarn_rope",
          "mistral_window4",
          "qwen2",
          "qwen2_window4_from_layer1",
          "qwen3",
          "gemma",
          "phi3",
          "phi3_longrope"};
}

// The encoders: a label of two texts, and masked tokens.
inline std::vector<std::string> zoo_encoders() {
  return {"bert_seqcls", "bert_mlm", "roberta_mlm"};
}

// The row of the token table that transformers never trains, that of the padding token (padding_idx
// of nn.Embedding); -1: there is none.
inline std::int64_t frozen_row(const std::string& name) {
  const auto config = nlohmann::json::parse(read_file(zoo(name) + "/config.json"));
  const auto pad = config.find("pad_token_id");
  return config["model_type"] == "gpt2" || pad == config.end() || pad->is_null()
             ? -1
             : pad->get<std::int64_t>();
}

// Two sequences; the targets are the tokens that follow.
struct ZooBatch {
  Batch ids;
  std::int64_t rows = 0, length = 0;
};

inline ZooBatch zoo_batch(const nlohmann::json& golden) {
  ZooBatch batch;
  for (const auto& row : golden["input_ids"]) {
    ++batch.rows;
    batch.length = static_cast<std::int64_t>(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      batch.ids.tokens.push_back(row[i].get<std::int32_t>());
      batch.ids.targets.push_back(i + 1 < row.size() ? row[i + 1].get<std::int32_t>() : -1);
    }
  }
  return batch;
}

// Of an encoder: padded rows with the texts that their tokens belong to; labels, or a target where
// a token was masked.
inline ZooBatch zoo_encoder_batch(const nlohmann::json& golden) {
  ZooBatch batch;
  const auto append = [](const nlohmann::json& row, std::vector<std::int32_t>& out) {
    for (const auto& each : row) out.push_back(std::max(each.get<std::int32_t>(), -1));
  };
  for (const auto& row : golden["input_ids"]) {
    ++batch.rows;
    batch.length = static_cast<std::int64_t>(row.size());
    append(row, batch.ids.tokens);
  }
  for (const auto& row : golden["attention_mask"]) {
    const auto mask = row.get<std::vector<std::int32_t>>();
    batch.ids.lengths.push_back(std::accumulate(mask.begin(), mask.end(), 0));
  }
  if (golden.contains("token_type_ids")) {
    for (const auto& row : golden["token_type_ids"]) append(row, batch.ids.segments);
  }
  if (!golden["labels"][0].is_array()) {
    append(golden["labels"], batch.ids.targets);
    return batch;
  }
  for (const auto& row : golden["labels"]) append(row, batch.ids.targets);
  return batch;
}

inline std::string zoo_name(const testing::TestParamInfo<std::string>& of) { return of.param; }

// Without dropout, whatever config.json says.
inline ModelConfig zoo_model(const std::string& name) {
  ModelConfig model = load_model(zoo(name));
  model.dropout = model.attention_dropout = model.label_dropout = 0;
  return model;
}

inline Strategy zoo_strategy(std::int64_t micro_batch) {
  Strategy s;
  s.name = "zoo";
  s.micro_batch = micro_batch;
  s.zero.param_persistence_threshold = 0;
  s.optimizer.kind = OptimizerKind::sgd;
  s.optimizer.momentum = 0;
  s.optimizer.weight_decay = 0;
  s.optimizer.lr = 0.125;
  return s;
}

}  // namespace zl::test
