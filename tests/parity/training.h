// Training runs of tests/parity as generate.py has them: models, tokens, goldens.
// Ownership: values. Threads: one at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/cpu/world.h"
#include "core/base/files.h"
#include "core/train/executor.h"

namespace zl::test {

inline constexpr int kBatch = 4, kLength = 32, kVocab = 97;

inline ModelConfig gpt2() {
  ModelConfig model;
  model.layers = 3;
  model.hidden = 64;
  model.heads = 4;
  model.vocab = kVocab;
  model.max_sequence = kLength;
  model.complete();
  return model;
}

inline ModelConfig llama(bool qkv_bias) {
  ModelConfig model = gpt2();
  model.family = "llama";
  model.kv_heads = 2;
  model.ffn = 128;
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.tied_embeddings = model.out_bias = model.mlp_bias = false;
  model.qkv_bias = qkv_bias;
  model.complete();
  return model;
}

inline ModelConfig named(const std::string& name) {
  if (name == "gpt2") return gpt2();
  ModelConfig model = llama(name == "qwen2");
  // One frequency stays, one is blended, the others are divided.
  if (name == "llama3") {
    model.rope_scaling = {
        .kind = RopeKind::llama3, .factor = 8, .original = 16, .low_freq = 0.5, .high_freq = 2};
  }
  return model;
}

inline int token(int step, int row, int position) {
  return (step * 31 + row * 17 + position * (1 + row % 3) + position * position / 7) % kVocab;
}

// Batches of kBatch rows, cut among micro-batches and data-parallel ranks.
class Rows final : public DataSource {
 public:
  Batch batch(const BatchRequest& request) const override {
    Batch batch;
    const auto first = static_cast<int>(request.first_sample());
    for (int row = first; row < first + static_cast<int>(request.micro_batch); ++row) {
      for (int p = 0; p < kLength; ++p) {
        batch.tokens.push_back(token(static_cast<int>(request.step), row, p));
        batch.targets.push_back(token(static_cast<int>(request.step), row, p + 1));
      }
    }
    return batch;
  }
};

// generate.py's recipe, kBatch rows cut among the data-parallel ranks.
inline Strategy adamw(int stage, int data_ranks, DType dtype = DType::f32) {
  Strategy s;
  s.zero.stage = stage;
  s.precision.compute_dtype = dtype;
  s.micro_batch = kBatch / data_ranks;
  s.optimizer.beta2 = 0.95;
  s.optimizer.weight_decay = 0.1;
  s.zero.param_persistence_threshold = 0;
  s.schedule.kind = ScheduleKind::warmup_lr;
  s.schedule.warmup_max_lr = 1e-3;
  s.schedule.warmup_num_steps = 10;
  s.schedule.warmup_log = false;
  return s;
}

struct Trajectory {
  std::vector<double> loss, grad_norm;
};

// What rank 0 of the strategy's mesh says.
inline Trajectory train(const std::string& model, const Strategy& s, int ranks, int steps) {
  Trajectory trajectory;
  const Mesh mesh = mesh_of(s, ranks);
  cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator, {.mesh = mesh});
    Engine engine(context, named(model), s, kLength, 1);
    for (int step = 0; step < steps; ++step) {
      const StepMetrics metrics = run_step(engine, Rows(), {.sequence_length = kLength});
      if (context.rank() != 0) continue;
      trajectory.loss.push_back(metrics.loss);
      trajectory.grad_norm.push_back(metrics.grad_norm);
    }
  });
  return trajectory;
}

inline nlohmann::json golden(const std::string& model) {
  return nlohmann::json::parse(
      read_file(std::string(ZL_SOURCE_DIR) + "/tests/golden/parity/" + model + ".json"));
}

inline double largest_relative_error(const std::vector<double>& ours,
                                     const nlohmann::json& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double largest = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double expected = theirs[i].get<double>();
    EXPECT_TRUE(std::isfinite(ours.at(i))) << "step " << i + 1;
    largest = std::max(largest, std::fabs(ours.at(i) - expected) / std::fabs(expected));
  }
  return largest;
}

}  // namespace zl::test
